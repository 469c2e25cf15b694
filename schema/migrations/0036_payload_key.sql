-- Which keys of --payload-keys the data of this database needs: an engine that lacks one of them, or has another one of that name, does not start.

create table sagad.payload_key (
    name     text        not null,
    proof    bytea       not null,
    first_at timestamptz not null default clock_timestamp(),
    constraint payload_key_pk primary key (name)
);
comment on table sagad.payload_key is
    'Names of the keys under which payloads in this database are sealed, never the keys. A row is written before anything is sealed under its key';
comment on column sagad.payload_key.name is 'As in the file of --payload-keys, and in front of what is sealed';
comment on column sagad.payload_key.proof is 'The name, sealed under the key: tells it from another key of the same name';
comment on column sagad.payload_key.first_at is 'When an engine had it for its active key first';

comment on column sagad.log.payload is
    'The records: a JSON array in UTF-8, byte for byte as written (uncompressed: compressing costs more than the disk). A member ~NAME of "data" is the member NAME sealed: "KEY.TEXT", see --payload-keys';
comment on column sagad.log.rest is
    'The state of a run that rests after this turn, in a form of the engine, or ~KEY. and the same sealed: from it repeats of calls are answered. It says nothing that the records do not say; null: those are read';
