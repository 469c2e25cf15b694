-- What a database with a rewound history has forgotten, as far as the engine that found it knows: so that it holds for every engine, and
-- outlives the one that knew. A shard of which something is missing is nobody's until a person has accepted that.

alter table sagad.shard add column turns int8 not null default 0;
comment on column sagad.shard.turns is
    'Turns that its owners appended, as they said with their last renewal. It never goes down: an engine that has seen more of them knows that history was rewound';
comment on column sagad.shard.epoch is
    'Raised by each takeover; what an append carries must equal it. On a later timeline of the server it is above all of the timelines before, so that none is used twice';
comment on column sagad.shard.owner_identity is
    'Host, boot, pid namespace, pid, start time and instance of that process: tells a restart on the same machine that the old owner is surely dead. "loss/ID": nobody may take it until history_loss ID is accepted';

alter table sagad.history_loss add column unlisted int8 not null default 0, add column calls_since timestamptz;
comment on column sagad.history_loss.unlisted is 'Sagas and calls that were too many to be looked at; they are not in history_saga and history_call';
comment on column sagad.history_loss.calls_since is
    'Calls of sagas that had left the memory of that engine are known from here on; null: all that it made';

create table sagad.history_shard (
    shard      int2 not null,
    loss       uuid not null,
    epoch      int8 not null,
    turns      int8 not null,
    turns_left int8 not null,
    constraint history_shard_pk primary key (loss, shard)
);
comment on table sagad.history_shard is 'The shards of which something is missing. No engine takes one before the loss is accepted';
comment on column sagad.history_shard.shard is 'The shard';
comment on column sagad.history_shard.loss is 'The row of history_loss';
comment on column sagad.history_shard.epoch is 'The highest that was ever used, as far as is known: what is given out later is above it';
comment on column sagad.history_shard.turns is 'Turns that were appended in all, as far as is known';
comment on column sagad.history_shard.turns_left is
    'As the rewound database counts them, by the last renewal that it has. At most the difference is missing: some of what came after that renewal may be there';

create table sagad.history_saga (
    shard    int2 not null,
    saga     uuid not null,
    loss     uuid not null,
    seq      int4 not null,
    seq_left int4 not null,
    constraint history_saga_pk primary key (shard, saga, loss)
);
comment on table sagad.history_saga is 'The sagas whose log lacks what was acknowledged, as far as that engine knows';
comment on column sagad.history_saga.shard is 'Of the saga';
comment on column sagad.history_saga.saga is 'Its id';
comment on column sagad.history_saga.loss is 'The row of history_loss';
comment on column sagad.history_saga.seq is 'Its last record that was acknowledged, as far as is known';
comment on column sagad.history_saga.seq_left is 'Its last record in the log when that was found; 0: it is not there at all';

create table sagad.history_call (
    shard    int2 not null,
    key      uuid not null,
    loss     uuid not null,
    saga     uuid not null,
    attempts int4 not null,
    effect   text not null,
    tool     text,
    constraint history_call_pk primary key (shard, key, loss)
);
comment on table sagad.history_call is
    'The calls that were made for those sagas. Whoever loads one counts an attempt that the log wants and that stands here as made, with an outcome that nobody knows';
comment on column sagad.history_call.shard is 'Of the saga';
comment on column sagad.history_call.key is 'The idempotency key of the operation';
comment on column sagad.history_call.loss is 'The row of history_loss';
comment on column sagad.history_call.saga is 'Its saga';
comment on column sagad.history_call.attempts is 'The number of its last attempt that was made';
comment on column sagad.history_call.effect is 'Its class of effect';
comment on column sagad.history_call.tool is 'What was called; null: the saga had left memory';
