-- Under which rules a definition is read: a rule that changes what the same text means holds for what is registered after it.

alter table sagad.tool add column reading int4 not null default 1, add constraint tool_reading_positive check (reading > 0);
alter table sagad.definition add column reading int4 not null default 1,
    add constraint definition_reading_positive check (reading > 0);
comment on column sagad.tool.reading is 'The rules that it was registered under, and that hold for it for ever';
comment on column sagad.definition.reading is 'The rules that it was registered under, and that hold for it for ever';
