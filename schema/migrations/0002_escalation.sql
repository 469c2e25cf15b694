-- What waits for a person: found without folding every saga.

create table sagad.escalation (
    shard       int2        not null,
    number      int8        not null,
    saga        uuid        not null,
    namespace   text        not null,
    opened_at   timestamptz not null,
    resolved_at timestamptz,
    step        text,
    reason      text        not null,
    body        bytea       not null,
    constraint escalation_pk primary key (shard, number)
);
create index escalation_open on sagad.escalation (shard, number) where resolved_at is null;
comment on table sagad.escalation is 'A question to a person. Written in the transaction that appends escalation.opened or escalation.resolved';
comment on column sagad.escalation.shard is 'Of the saga; number modulo 64';
comment on column sagad.escalation.number is 'Counted per shard, so that it needs no sequence that all shards share';
comment on column sagad.escalation.saga is 'Which saga is stuck';
comment on column sagad.escalation.namespace is 'Of the saga';
comment on column sagad.escalation.opened_at is 'When';
comment on column sagad.escalation.resolved_at is 'When a person decided; null: open';
comment on column sagad.escalation.step is 'Where; null: the saga as a whole';
comment on column sagad.escalation.reason is 'Why, in a word';
comment on column sagad.escalation.body is 'JSON in UTF-8, as the API shows it: evidence, and what each verb would do';
