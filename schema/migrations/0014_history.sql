-- A database whose history was rewound: an asynchronous standby was promoted, or a backup restored. What was acknowledged and is missing
-- stands here until a person has accepted it. Before that neither the engine that misses it writes, nor one that connects later.

create table sagad.history_loss (
    id          uuid        not null,
    found_at    timestamptz not null default clock_timestamp(),
    engine      text        not null,
    missing     text        not null,
    accepted_at timestamptz,
    accepted_by text,
    note        text,
    constraint history_loss_pk primary key (id)
);
comment on table sagad.history_loss is
    'Each time an engine found that work is missing which was acknowledged to it. While one is not accepted neither that engine appends nor one that connects later: "sagad accept-history"';
comment on column sagad.history_loss.id is 'A UUIDv7';
comment on column sagad.history_loss.found_at is 'When, by the clock of this database';
comment on column sagad.history_loss.engine is 'Which engine found it';
comment on column sagad.history_loss.missing is 'What is missing, as far as that engine can know';
comment on column sagad.history_loss.accepted_at is 'When a person accepted this history; null: engines wait';
comment on column sagad.history_loss.accepted_by is 'Who: the user of the system and the role of the database';
comment on column sagad.history_loss.note is 'Why, in their words';

create function sagad.torn(saga uuid, seq int4) returns bool
    language plpgsql as $$
begin
    raise exception using errcode = 'SG003', message = format('saga %s: the record before %s is missing', saga, seq);
end
$$;
comment on function sagad.torn(uuid, int4) is 'SQLSTATE SG003: a turn is appended behind a hole, so that the log was rewound';
