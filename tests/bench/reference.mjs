// Measures PostgreSQL alone, by pgbench in its own database: (i) a step as engines usually write it, five statements in
// a transaction; (ii) rows by INSERT ... SELECT; (iii) commits of one row.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const payload = 'x'.repeat(40)
const rowsOfInsert = 1000
const sagas = 100000

const scripts = {
  naive: `\\set id random(1, ${sagas})
begin;
update saga set status = 1, updated_at = now() where id = :id;
insert into operation(saga, status, payload) values (:id, 1, '${payload}');
insert into event(saga, kind, payload) values (:id, 1, '${payload}');
commit;
`,
  // The keys never repeat, because each client counts for itself.
  rows: `\\set first :client_id * 1000000000000 + :n
\\set n :n + ${rowsOfInsert}
insert into raw_row(id, kind, payload) select :first + i, 1, '${payload}' from generate_series(1, ${rowsOfInsert}) i;
`,
  commit: `insert into committed(kind, payload) values (1, '${payload}');
`
}

export class Reference {
  constructor(rig) {
    this.rig = rig
    this.pgbench = join(rig.binaries, 'pgbench')
    this.dsn = rig.dsn.replace('dbname=postgres', 'dbname=reference')
    for (const [name, text] of Object.entries(scripts)) writeFileSync(this.path(name), text)
    this.sql(
      `create table saga(id bigint primary key, status int not null, updated_at timestamptz not null)`,
      `insert into saga select i, 0, now() from generate_series(1, ${sagas}) i`,
      'create table operation(id bigint generated always as identity primary key, saga bigint not null, status ' +
        'int not null, payload text not null)',
      'create table event(id bigint generated always as identity primary key, saga bigint not null, kind int ' +
        'not null, payload text not null)',
      'create table raw_row(id bigint primary key, kind int not null, payload text not null)',
      'create table committed(kind int not null, payload text not null)',
      'vacuum analyze'
    )
  }

  path(name) {
    return join(this.rig.directory, `${name}.pgbench`)
  }

  sql(...statements) {
    const { dsn } = this.rig
    this.rig.dsn = this.dsn
    try {
      return this.rig.script(...statements)
    } finally {
      this.rig.dsn = dsn
    }
  }

  // On a busy machine not one transaction may end within a second. Then the run gets ten times as long.
  async run(name, clients, seconds) {
    return (
      (await this.try(name, clients, seconds)) ??
      (await this.try(name, clients, 10 * seconds)) ??
      Promise.reject(new Error(`pgbench: ${this.talk}`))
    )
  }

  async try(name, clients, seconds) {
    this.sql('truncate operation, event, raw_row, committed')
    const args = [
      '-n',
      '-M',
      'prepared',
      '-T',
      String(seconds),
      '-c',
      String(clients),
      '-j',
      String(Math.min(2, clients)),
      '-f',
      this.path(name)
    ]
    if (name === 'rows') args.push('-D', 'n=0')
    const { out, talk } = await this.rig.output('pgbench', this.pgbench, [
      ...args,
      '-h',
      this.rig.directory,
      '-p',
      '5432',
      '-U',
      'postgres',
      'reference'
    ])
    const rate = Number(/tps = ([\d.]+)/.exec(out)?.[1])
    this.talk = talk || out
    if (!(rate > 0)) return undefined
    return {
      per_second: rate * (name === 'rows' ? rowsOfInsert : 1),
      of: name === 'rows' ? 'rows' : 'transactions',
      clients
    }
  }

  // Returns the number of clients at which (i) is fastest here.
  async chooseClients(seconds) {
    const tried = []
    for (const clients of [8, 16, 32]) tried.push(await this.run('naive', clients, seconds))
    this.tried = tried
    this.clients = tried.reduce((best, one) => (one.per_second > best.per_second ? one : best)).clients
  }
}
