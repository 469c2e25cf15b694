-- A run that rests is read by one row: the last row of its log has the run's state, and a repeat of a call needs no other.

alter table sagad.log add column rest bytea;
alter table sagad.log alter column rest set storage external;
comment on column sagad.log.rest is
    'The state of a run that rests after this turn, in a form of the engine: from it repeats of calls are answered. It says nothing that the records do not say; null: those are read';
