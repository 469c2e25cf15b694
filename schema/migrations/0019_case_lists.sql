-- Lists of cases by what they are about, in order of time over all shards. What a list is filtered and grouped by stands in columns that
-- PostgreSQL makes from the body, so that engines of the release before, which know nothing of them, fill them too.

-- A text with the character 0 is JSON, and no jsonb: such a body must not keep its turn from the log.
create function sagad.case_member(body bytea, path text[]) returns text
    language plpgsql immutable parallel safe as $$
begin
    return convert_from(body, 'UTF8')::jsonb #>> path;
exception when others then
    return null;
end
$$;
comment on function sagad.case_member is 'A member of the body of an escalation, as text; null where it is missing or the body is no jsonb';

alter table sagad.escalation
    add column tool  text generated always as (sagad.case_member(body, '{evidence,tool}')) stored,
    add column error text generated always as (sagad.case_member(body, '{evidence,last_error}')) stored,
    add column cost  int8 generated always as (sagad.case_member(body, '{cost}')::int8) stored;
comment on column sagad.escalation.tool is 'The tool that was called; null: the saga as a whole';
comment on column sagad.escalation.error is 'The code of the last error; null: there was none';
comment on column sagad.escalation.cost is 'What the operation has cost, in micros; null: not known';

create index escalation_time on sagad.escalation (namespace, opened_at, number);
create index escalation_time_open on sagad.escalation (namespace, opened_at, number) where resolved_at is null;
create index approval_time on sagad.approval (namespace, opened_at, number);
create index approval_time_open on sagad.approval (namespace, opened_at, number) where ended_at is null;
drop index sagad.escalation_newest;
drop index sagad.approval_newest;
drop index sagad.approval_open;

create view sagad.case_list as
    select e.number, s.name as saga_name, s.business_id, e.step, e.tool, e.reason, e.error,
           sagad.case_member(e.body, '{evidence,detail}') as detail, e.cost, e.opened_at, e.resolved_at, e.namespace, s.tags, e.saga
      from sagad.escalation e
      left join sagad.saga s on s.shard = sagad.shard_of(e.saga) and s.id = e.saga;
comment on view sagad.case_list is
    'Escalations with what they are about. "where namespace = N and resolved_at is null order by opened_at desc, number desc" is `sagactl escalations`';
