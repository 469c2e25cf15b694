-- The currency of what a case costs, so that sums never add euros to dollars. Cases of engines of the release before have none.

alter table sagad.escalation
    add column currency text generated always as (sagad.case_member(body, '{currency}')) stored;
comment on column sagad.escalation.currency is 'The code of ISO 4217 of the cost; null: the tool does not say';

-- The new column rewrites the table, and its indexes with it. For an empty table PostgreSQL takes all of them to be equally good, and the
-- youngest of them is used: a plan that was made then must not read all shards later.
alter table sagad.escalation drop constraint escalation_pk;
alter table sagad.escalation add constraint escalation_pk primary key (shard, number);
drop index sagad.escalation_open;
create index escalation_open on sagad.escalation (shard, namespace, opened_at, number) where resolved_at is null;

create or replace view sagad.case_list as
    select e.number, s.name as saga_name, s.business_id, e.step, e.tool, e.reason, e.error,
           sagad.case_member(e.body, '{evidence,detail}') as detail, e.cost, e.opened_at, e.resolved_at, e.namespace, s.tags, e.saga,
           e.currency
      from sagad.escalation e
      left join sagad.saga s on s.shard = sagad.shard_of(e.saga) and s.id = e.saga;
