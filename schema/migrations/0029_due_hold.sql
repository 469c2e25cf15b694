-- A saga of which nothing moves but what a hold keeps is parked like every other one that waits. Its row in due says which hold it waits for. When
-- holds have ended, the owner of the shard makes the sagas that waited for them due, some at a time.

alter table sagad.due add column hold int8;
create index due_hold on sagad.due (shard, hold, saga) where hold is not null;
comment on column sagad.due.hold is 'The number of the hold that a call of the parked saga waits for: when that has ended, the saga is due at once; null: it waits for none';
