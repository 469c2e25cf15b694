-- Escalations and approvals in order of time. A number carries its shard, so that the largest number is not the newest question.

create index escalation_newest on sagad.escalation (shard, namespace, opened_at, number);
create index approval_newest on sagad.approval (shard, namespace, opened_at, number);

drop index sagad.escalation_open;
create index escalation_open on sagad.escalation (shard, namespace, opened_at, number) where resolved_at is null;
drop index sagad.approval_open;
create index approval_open on sagad.approval (shard, namespace, opened_at, number) where ended_at is null;
