-- Figures over time, so that an overview needs no Prometheus: what each engine has counted since it wrote last, a row a minute for
-- each saga and tool. After a day the rows of an hour become one.

create table sagad.series (
    namespace       text        not null,
    span            int2        not null,
    at              timestamptz not null,
    kind            text        not null,
    name            text        not null,
    part            uuid        not null,
    started         int8        not null default 0,
    completed       int8        not null default 0,
    compensated     int8        not null default 0,
    abandoned       int8        not null default 0,
    escalated       int8        not null default 0,
    operations      int8        not null default 0,
    calls           int8        not null default 0,
    retries         int8        not null default 0,
    calls_completed int8        not null default 0,
    calls_failed    int8        not null default 0,
    calls_unknown   int8        not null default 0,
    duplicates      int8        not null default 0,
    constraint series_pk primary key (namespace, span, at, kind, name, part),
    constraint series_span_known check (span in (1, 60)),
    constraint series_kind_known check (kind in ('saga', 'tool'))
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
-- Not over the column itself: a plan that is made while the table is empty must not take it for questions about one namespace.
create index series_at on sagad.series ((span::int4), at);
comment on table sagad.series is
    'Figures over time, by saga and by tool: a row a minute for a day, a row an hour for 90 days. Each row is a part, and the parts add up. A reference table of bounded size whose key does not start with the shard; nothing that must be true rests on it';
comment on column sagad.series.namespace is 'Of the sagas and tools';
comment on column sagad.series.span is 'How many minutes the row covers: 1 or 60';
comment on column sagad.series.at is 'Where they begin';
comment on column sagad.series.kind is 'saga: the name is that of a definition, and the columns from started to escalated count. tool: the other columns count';
comment on column sagad.series.name is 'Of the definition, or of the tool';
comment on column sagad.series.part is 'Made by the engine for each write, so that a write that is repeated adds nothing; zeros: the parts of an hour, put together';
comment on column sagad.series.started is 'Sagas that started';
comment on column sagad.series.completed is 'Sagas that ended completed';
comment on column sagad.series.compensated is 'Sagas that ended compensated';
comment on column sagad.series.abandoned is 'Sagas that ended abandoned';
comment on column sagad.series.escalated is 'Cases that were opened';
comment on column sagad.series.operations is 'Operations that were new';
comment on column sagad.series.calls is 'Calls, retries among them';
comment on column sagad.series.retries is 'Calls that were not the first attempt of their operation';
comment on column sagad.series.calls_completed is 'Calls that completed';
comment on column sagad.series.calls_failed is 'Calls that failed for certain';
comment on column sagad.series.calls_unknown is 'Calls whose outcome is unknown';
comment on column sagad.series.duplicates is 'Emissions of calls that began nothing';
