// Transfers between two databases, one of them sagad's own, by the adapter `sql` with its barrier, while sagad is
// killed, sessions are ended and PostgreSQL crashes. The judge is SQL: no cent is made or lost, and each saga moved
// what its ending says.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chooseSeed, randomFrom } from '../lib/load.mjs'
import { World, expect, expectEqual, promise, quick, root, run, sleep } from '../lib/world.mjs'

const kills = quick ? 5 : 60
const accounts = 20
const opening = 2000

class Banks extends World {
  constructor() {
    super()
    this.ended = new Map() // business id -> {from, to, cents, status}
    this.started = new Map() // business id -> {id, from, to, cents}
    this.faults = []
  }

  dsnOf(bank) {
    return bank === 'a' ? this.dsn : this.dsn.replace('dbname=postgres', 'dbname=bank_b')
  }

  at(bank, text) {
    return this.sql.call({ binaries: this.binaries, dsn: this.dsnOf(bank) }, text)
  }

  async open() {
    this.sql('create database bank_b')
    for (const bank of ['a', 'b']) {
      this.at(bank, readFileSync(join(root, 'schema', 'barrier.sql'), 'utf8'))
      this.at(
        bank,
        `create table account (id text primary key, cents bigint not null);
        insert into account select 'x' || n, ${opening} from generate_series(1, ${accounts}) n`
      )
    }
    const secrets = join(this.directory, 'secrets.json')
    writeFileSync(secrets, JSON.stringify({ bank_a: this.dsnOf('a'), bank_b: this.dsnOf('b') }), { mode: 0o600 })
    await this.startSagad(['--secrets', secrets])
    const document = this.example('transfer.json')
    document.tools.push({ name: 'refuse', effect: 'read', builtin: { do: 'fail', outcome: 'no_effect' } })
    const [transfer] = document.sagas
    document.sagas.push({
      ...transfer,
      name: 'transfer_refused',
      steps: [...transfer.steps, { id: 'refuse', call: 'refuse' }]
    })
    document.sagas.push({
      ...transfer,
      name: 'transfer_aborted',
      steps: [transfer.steps[0], { id: 'rest', call: 'rest' }, transfer.steps[1]]
    })
    document.tools.push({ name: 'rest', effect: 'read', builtin: { do: 'sleep', for: '300ms' } })
    await this.define(document)
  }

  // Keeps the row of an account locked.
  hold(account, seconds) {
    return this.launch('holder', join(this.binaries, 'psql'), [
      '-X',
      '-d',
      this.dsn,
      '-c',
      `select cents from account where id = '${account}' for update; select pg_sleep(${seconds})`
    ])
  }

  // Waits until PostgreSQL has such a session.
  async sessions(where) {
    const count = () => this.at('a', `select count(*) from pg_stat_activity where pid <> pg_backend_pid() and ${where}`)
    for (const end = Date.now() + 20000; count() === '0'; await sleep(20))
      expect(Date.now() < end, `a session where ${where}`)
  }

  sum(bank) {
    return Number(this.at(bank, 'select sum(cents) from account'))
  }

  async begin(name, business, input) {
    for (const end = Date.now() + 120000; Date.now() < end; await sleep(30)) {
      const answer = await this.api('POST', '/v1/sagas', { saga: name, id: business, input }, { seconds: 15 }).catch(
        () => undefined
      )
      if (answer && (answer.status === 201 || answer.status === 200)) {
        this.started.set(business, { id: answer.json.id, ...input })
        return answer.json.id
      }
      if (answer && answer.status !== 503) {
        this.faults.push(`${business}: ${answer.status} ${answer.text}`)
        return undefined
      }
    }
    this.faults.push(`${business}: nobody has answered for two minutes`)
    return undefined
  }
}

async function client(world, number, random) {
  for (let count = 0; !world.stopping; count++) {
    const account = () => `x${1 + Math.floor(random() * accounts)}`
    const fate = random()
    const name = fate < 0.6 ? 'transfer' : fate < 0.8 ? 'transfer_refused' : 'transfer_aborted'
    const input = { from: account(), to: random() < 0.1 ? 'nobody' : account(), cents: 1 + Math.floor(random() * 400) }
    const id = await world.begin(name, `${name}-${number}-${count}`, input)
    if (id && name === 'transfer_aborted') {
      await sleep(random() * 200)
      // Or not, because sagad may be away.
      await world.api('POST', `/v1/sagas/${id}/abort`, { note: 'changed my mind' }).catch(() => undefined)
    }
    await sleep(random() * 60)
  }
}

await run(new Banks(), async (world) => {
  const random = randomFrom(chooseSeed())
  await world.startPostgres()
  await world.open()

  await promise('a transfer moves the money, one to nobody leaves it where it was', async () => {
    const good = await world.until(await world.start('transfer', { from: 'x1', to: 'x2', cents: 300 }))
    expectEqual(good.status, 'completed', 'the transfer')
    expectEqual([world.sum('a'), world.sum('b')], [accounts * opening - 300, accounts * opening + 300], 'both banks')
    const nobody = await world.until(await world.start('transfer', { from: 'x1', to: 'nobody', cents: 300 }))
    expectEqual(nobody.status, 'compensated', 'the transfer to nobody')
    const poor = await world.until(await world.start('transfer', { from: 'x1', to: 'x2', cents: 30000 }))
    expectEqual(poor.status, 'compensated', 'the transfer of more than there is')
    expectEqual([world.sum('a'), world.sum('b')], [accounts * opening - 300, accounts * opening + 300], 'both banks')
    const refused = await world.until(await world.start('transfer_refused', { from: 'x1', to: 'x2', cents: 300 }))
    expectEqual(refused.status, 'compensated', 'the refused transfer')
    expectEqual([world.sum('a'), world.sum('b')], [accounts * opening - 300, accounts * opening + 300], 'both banks')
    expect(
      !JSON.stringify(world.sql("select convert_from(payload, 'UTF8') from sagad.log")).includes('dbname=bank_b'),
      'no connection string is in the log'
    )
  })

  await promise(
    'a withdrawal that nobody knows of is made void before it is given up, and no money moves',
    async () => {
      const held = world.hold('x3', 40)
      await world.sessions(`query like '%for update%' and wait_event = 'PgSleep'`)
      const id = await world.start('transfer', { from: 'x3', to: 'x4', cents: 5 })
      await world.sessions(`application_name = 'sagad sql' and wait_event_type = 'Lock'`)
      await world.restart()
      const saga = await world.until(id, ['completed', 'compensated', 'abandoned', 'escalated'], 60)
      expectEqual(saga.status, 'compensated', 'the transfer')
      const [withdraw] = saga.steps
      expectEqual(
        world.at('a', `select verdict from sagad_barrier.operation where key = '${withdraw.key}'`),
        'void',
        'what the barrier knows of it'
      )
      world.at(
        'a',
        `select pg_terminate_backend(pid) from pg_stat_activity where query like '%for update%' 
          and pid <> pg_backend_pid()`
      )
      await held.ended
      expectEqual(world.at('a', `select cents from account where id = 'x3'`), String(opening), 'the account')
    }
  )

  const clients = [1, 2, 3, 4, 5, 6].map((number) => client(world, number, random))

  await promise(
    `sagad comes back after each of ${kills} kills, with sessions ended and PostgreSQL crashing in between`,
    async () => {
      for (let kill = 1; kill <= kills; kill++) {
        for (let part = 0; part < 5; part++) {
          await sleep(20 + random() * 120)
          if (random() < 0.4) {
            world.at(
              'a',
              `select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'sagad sql'`
            )
          }
        }
        if (kill % 10 === 5) {
          await world.killPostgres()
          await world.startPostgres()
          await world.ready()
          continue
        }
        await world.restart()
      }
    },
    900
  )

  world.stopping = true
  await Promise.all(clients)

  await promise(
    'every transfer ends completed or compensated: nothing is left to a person',
    async () => {
      for (const [business, transfer] of world.started) {
        const saga = await world.until(transfer.id, ['completed', 'compensated', 'abandoned', 'escalated'], 120)
        expect(['completed', 'compensated'].includes(saga.status), `${business} ended ${saga.status}`, saga)
        world.ended.set(business, { ...transfer, status: saga.status })
      }
      expectEqual(world.faults, [], 'what starts were answered with')
      const count = (status) => [...world.ended.values()].filter((transfer) => transfer.status === status).length
      console.log(`# ${count('completed')} completed, ${count('compensated')} compensated`)
      expect(count('completed') > 0 && count('compensated') > 0, 'there are both endings')
    },
    300
  )

  await promise('no cent was made or lost, and every account holds what the endings say', async () => {
    expectEqual(world.sum('a') + world.sum('b'), 2 * accounts * opening, 'the money of both banks')
    for (const [bank, member, sign] of [
      ['a', 'from', -1],
      ['b', 'to', 1]
    ]) {
      const due = Object.fromEntries(Array.from({ length: accounts }, (_, n) => [`x${n + 1}`, opening]))
      due[bank === 'a' ? 'x1' : 'x2'] += sign * 300 // from the first promise
      for (const transfer of world.ended.values())
        if (transfer.status === 'completed') due[transfer[member]] += sign * transfer.cents
      const held = Object.fromEntries(
        world
          .at(bank, 'select id, cents from account')
          .split('\n')
          .map((line) => line.split('|'))
          .map(([id, cents]) => [id, Number(cents)])
      )
      expectEqual(held, due, `the accounts of bank ${bank}`)
    }
    console.log(
      `# keys asked for more than once: ` +
        `${world.at('a', 'select count(*) from sagad_barrier.operation where asked > 1')} and ` +
        `${world.at('b', 'select count(*) from sagad_barrier.operation where asked > 1')}, void: ` +
        `${world.at('a', `select count(*) from sagad_barrier.operation where verdict = 'void'`)} and ` +
        `${world.at('b', `select count(*) from sagad_barrier.operation where verdict = 'void'`)}`
    )
  })
})
