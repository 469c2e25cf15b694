-- What a next release may bring: a table, a column that may be empty, an index. It only adds.
create table sagad.next_thing (
    shard int2 not null,
    id    uuid not null,
    constraint next_thing_pk primary key (shard, id)
);
comment on table sagad.next_thing is 'Of the next release';
alter table sagad.saga add column next_origin text;
alter table sagad.engine add column next_zone text;
create index next_origin_known on sagad.saga (shard, next_origin) where next_origin is not null;
