-- An approval may be closed to whoever started the saga. The log does not say who did: engines of the release before would refuse the record.
alter table sagad.saga add column started_by text;
comment on column sagad.saga.started_by is
    'Name of the token that started it; null: no person did (it follows another saga, or is the run of an agent''s calls), or it was started before this column was there';
