-- Calls of one saga may wait for different holds. The row of the parked saga names all of these, and the saga is due as soon as one of them has
-- ended: a call may go on then, while the others wait. It replaces the column `hold`, which no release has used.

alter table sagad.due add column holds int8[] constraint due_holds_few check (cardinality(holds) between 1 and 16);
update sagad.due d set holds = array[d.hold] where d.hold is not null;
create index due_holds on sagad.due (shard, holds, saga) where holds is not null;
alter table sagad.due drop column hold;
comment on column sagad.due.holds is 'The numbers of the holds that calls of the parked saga wait for, rising: when one of them has ended, the saga is due at once; null: it waits for none';
