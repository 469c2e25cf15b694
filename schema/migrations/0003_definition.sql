-- Registered tools and definitions of sagas: immutable versions.

create table sagad.tool (
    namespace  text        not null,
    name       text        not null,
    version    int4        not null,
    identity   bytea       not null,
    body       bytea       not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint tool_pk primary key (namespace, name, version),
    constraint tool_version_positive check (version > 0)
);
comment on table sagad.tool is 'Registered tools. A version never changes: running sagas are pinned to it';
comment on column sagad.tool.namespace is 'Who sees it';
comment on column sagad.tool.name is 'What steps call it';
comment on column sagad.tool.version is '1 for the first; a new one where the identity differs';
comment on column sagad.tool.identity is 'SHA-256 of the canonical form';
comment on column sagad.tool.body is 'JSON in UTF-8, as registered';
comment on column sagad.tool.created_at is 'When it was registered';

create table sagad.definition (
    namespace  text        not null,
    name       text        not null,
    version    int4        not null,
    identity   bytea       not null,
    body       bytea       not null,
    created_at timestamptz not null default clock_timestamp(),
    constraint definition_pk primary key (namespace, name, version),
    constraint definition_version_positive check (version > 0)
);
comment on table sagad.definition is 'Registered definitions of sagas. A version never changes: running sagas are pinned to it';
comment on column sagad.definition.namespace is 'Who sees it';
comment on column sagad.definition.name is 'What is started';
comment on column sagad.definition.version is '1 for the first; a new one where the identity differs';
comment on column sagad.definition.identity is 'SHA-256 of the canonical form';
comment on column sagad.definition.body is 'JSON in UTF-8, as registered';
comment on column sagad.definition.created_at is 'When it was registered';
