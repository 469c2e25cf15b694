// Sagas that the clock starts: one for each instant, in time zones, held and released, while the saga before runs, and
// when a start is refused.
import { World, expect, expectEqual, promise, run, sleep } from '../lib/world.mjs'

const schedules = '/v1/schedules'

// Reads the instant of a saga from its business id, which the schedule makes: schedule:NAME@INSTANT.
const instantOf = (saga) => Date.parse(saga.business_id.slice(saga.business_id.indexOf('@') + 1))

class Clockwork extends World {
  async make(name, more, status = 201) {
    const answer = await this.api('POST', schedules, { name, saga: 'tick', ...more })
    expectEqual(answer.status, status, `POST /v1/schedules ${name}`)
    return answer.json
  }

  async schedule(name) {
    return (await this.api('GET', `${schedules}/${name}`)).json
  }

  async sagasOf(name) {
    return (await this.api('GET', `/v1/sagas?tag.schedule=${name}&limit=500`)).json.items
  }

  async reach(name, what, holds, seconds = 60) {
    for (const end = Date.now() + seconds * 1000; ; await sleep(50)) {
      const [schedule, sagas] = [await this.schedule(name), await this.sagasOf(name)]
      if (holds(schedule, sagas)) return { schedule, sagas }
      expect(Date.now() < end, what, JSON.stringify(schedule))
    }
  }

  async act(name, verb) {
    const answer = await this.api('POST', `${schedules}/${name}/${verb}`, { note: `${verb} it` })
    expectEqual(answer.status, 200, verb)
    return answer.json
  }
}

const definition = (more = {}) => ({
  sagas: [
    { name: 'tick', ...more, steps: [{ id: 'a', sleep: '1ms' }] },
    { name: 'waits', steps: [{ id: 'go', signal: { name: 'go' } }] }
  ]
})

await run(new Clockwork(), async (world) => {
  await world.startPostgres()
  await world.startSagad()
  await world.define(definition())

  await promise('a schedule is made once, and every fault is told with its place', async () => {
    const made = await world.make('nightly', { cron: '30 2 * * *', zone: 'Europe/Berlin', input: { a: 1 } })
    expectEqual(
      [made.name, made.saga, made.zone, made.overlap, made.catch_up, made.status, made.started, made.input],
      ['nightly', 'tick', 'Europe/Berlin', 'skip', 'none', 'active', 0, { a: 1 }],
      'the schedule'
    )
    await world.make('nightly', { cron: '30 2 * * *', zone: 'Europe/Berlin', input: { a: 1 } }, 200)
    await world.make('nightly', { cron: '31 2 * * *', zone: 'Europe/Berlin', input: { a: 1 } }, 409)
    for (const [more, pointer] of [
      [{ cron: '30 2 * *' }, '/cron'],
      [{ cron: '30 2 * * *', zone: 'Europe/Berln' }, '/zone'],
      [{ cron: '30 2 * * *', zone: 'UTC+3' }, '/zone'],
      [{ every: '5ms' }, '/every'],
      [{ every: '1m', saga: 'nothing' }, '/saga'],
      [{ every: '1m', zone: 'UTC' }, '/zone'],
      [{}, '']
    ]) {
      const answer = await world.api('POST', schedules, { name: 'wrong', saga: 'tick', ...more })
      expectEqual(
        [answer.status, answer.json.errors?.map((error) => error.pointer)],
        [422, [pointer]],
        JSON.stringify(more)
      )
    }
    expectEqual((await world.api('GET', `${schedules}/nothing`)).status, 404, 'one that is not there')
    expectEqual(
      (await world.api('GET', schedules)).json.items.map((item) => item.name),
      ['nightly'],
      'the list'
    )
  })

  await promise('the next instants are those of the zone, as PostgreSQL knows it', async () => {
    for (const [zone, hour] of [
      ['Europe/Berlin', 8],
      ['Australia/Lord_Howe', 8],
      ['Asia/Kolkata', 8],
      ['America/New_York', 8]
    ]) {
      const name = zone.toLowerCase().replace('/', '-')
      await world.make(name, { cron: `15 ${hour} * * *`, zone })
      const { items } = (await world.api('GET', `${schedules}/${name}/next?count=400`)).json
      const wanted = world
        .sql(
          `select string_agg(to_char(t at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"'), ' ') from 
            (select (d + interval '${hour} hours 15 minutes') at time zone '${zone}' as t
             from generate_series((now() at time zone '${zone}')::date::timestamp,
             (now() at time zone '${zone}')::date + interval '500 days', interval '1 day') as d) as of where t > now()`
        )
        .split(' ')
        .slice(0, 400)
      expectEqual(items, wanted, zone)
      expectEqual((await world.api('DELETE', `${schedules}/${name}`)).status, 200, 'it is deleted')
    }
    await world.make('leap', { cron: '0 0 29 2 *' })
    expectEqual(
      (await world.api('GET', `${schedules}/leap/next?count=2`)).json.items,
      ['2028-02-29T00:00:00.000Z', '2032-02-29T00:00:00.000Z'],
      'leap years'
    )
  })

  await promise('each second one saga, none twice and none left out', async () => {
    await world.make('seconds', { every: '1s', overlap: 'all', catch_up: 'all' })
    const { sagas, schedule } = await world.reach('seconds', 'sagas are started', (_, found) => found.length >= 4)
    const instants = sagas.map(instantOf).sort((a, b) => a - b)
    for (const [i, instant] of instants.entries()) expectEqual(instant, instants[0] + i * 1000, 'the instant')
    expect(
      instants[0] > Date.parse(schedule.created_at) && instants[0] <= Date.parse(schedule.created_at) + 1000,
      'the first'
    )
    for (const saga of sagas) expect(Date.parse(saga.created_at) >= instantOf(saga), 'a saga does not start early')
  })

  await promise('a held schedule starts nothing; starts that came due meanwhile are caught up', async () => {
    const held = await world.act('seconds', 'hold')
    expectEqual([held.status, held.hold.note, held.next_at], ['held', 'hold it', null], 'the schedule')
    await sleep(500) // a start that was under way
    const before = (await world.sagasOf('seconds')).length
    await sleep(2500)
    expectEqual((await world.sagasOf('seconds')).length, before, 'sagas while it is held')
    expectEqual((await world.act('seconds', 'release')).hold, null, 'the hold')
    const { sagas } = await world.reach('seconds', 'it goes on', (_, found) => found.length >= before + 4)
    const instants = sagas.map(instantOf).sort((a, b) => a - b)
    for (const [i, instant] of instants.entries()) expectEqual(instant, instants[0] + i * 1000, 'the instant')
    expectEqual((await world.api('DELETE', `${schedules}/seconds`)).status, 200, 'it is deleted')
    expectEqual((await world.api('DELETE', `${schedules}/seconds`)).status, 404, 'once')
  })

  await promise('skip: while the saga before runs, an instant is left out', async () => {
    await world.make('skips', { saga: 'waits', every: '1s' })
    const { sagas } = await world.reach('skips', 'instants are skipped', (schedule) => schedule.skipped >= 2)
    expectEqual(sagas.length, 1, 'sagas')
    await world.api('POST', `/v1/sagas/${sagas[0].id}/signals/go`, {})
    await world.reach('skips', 'the next one starts', (_, found) => found.length === 2)
    await world.api('DELETE', `${schedules}/skips`)
  })

  await promise(
    'queue: while the saga before runs, instants wait in order; an escalated saga is not in the way',
    async () => {
      await world.make('queues', { saga: 'waits', every: '1s', overlap: 'queue' })
      const first = await world.reach('queues', 'instants wait', (schedule) => schedule.queued >= 3)
      expectEqual(first.sagas.length, 1, 'sagas')
      await world.api('POST', `/v1/sagas/${first.sagas[0].id}/signals/go`, {})
      const second = await world.reach('queues', 'the next one starts', (_, found) => found.length === 2)
      const [one, two] = second.sagas.map(instantOf).sort((a, b) => a - b)
      expectEqual(two - one, 1000, 'the instant after')
      const { id } = second.sagas.find((saga) => instantOf(saga) === two)
      await world.reach('queues', 'the second one waits', (_, found) =>
        found.some((saga) => saga.id === id && saga.status === 'waiting')
      )
      world.sql(`update sagad.saga set status = 'escalated' where id = '${id}'`)
      await world.reach('queues', 'the third one starts', (_, found) => found.length === 3)
      await world.act('queues', 'hold')
    }
  )

  await promise('a start that is refused is told, keeps its instant, and goes on when that is mended', async () => {
    await world.make('refused', { every: '1s', overlap: 'all', catch_up: 'all' })
    await world.reach('refused', 'it starts', (_, found) => found.length >= 1)
    await world.define(definition({ input: { type: 'object', required: ['x'] } }))
    const { schedule } = await world.reach('refused', 'the refusal is shown', (seen) => seen.error !== null)
    expectEqual(schedule.status, 'failing', 'the status')
    expect(
      schedule.error.message.includes('input') && schedule.error.instant && schedule.queued >= 1,
      'the error',
      JSON.stringify(schedule.error)
    )
    await world.define(definition({ retired: 'use another' }))
    await world.act('refused', 'hold')
    await world.act('refused', 'release') // otherwise it is tried again within a minute
    await world.reach('refused', 'it says that the definition is retired', (seen) =>
      seen.error?.message.includes('is retired: use another')
    )
    await world.define(definition())
    await world.act('refused', 'hold')
    await world.act('refused', 'release') // otherwise it is tried again within a minute
    const { sagas } = await world.reach(
      'refused',
      'it goes on',
      (seen, found) => seen.error === null && seen.queued === 0 && found.length >= 4
    )
    const instants = sagas.map(instantOf).sort((a, b) => a - b)
    for (const [i, instant] of instants.entries()) expectEqual(instant, instants[0] + i * 1000, 'the instant')
    await world.act('refused', 'hold')
  })

  await promise('an engine that was away: each instant by what `catch_up` says', async () => {
    for (const catch_up of ['none', 'last', 'all'])
      await world.make(`away-${catch_up}`, { every: '1s', overlap: 'all', catch_up })
    await world.reach('away-all', 'it starts', (_, found) => found.length >= 1)
    await world.kill9()
    const gone = Date.now()
    // As if it had been away for three minutes.
    world.sql(
      `update sagad.schedule set last_at = last_at - interval '3 minutes', look_at = look_at - interval '3 minutes'
        where name like 'away-%'`
    )
    world.launchSagad(world.sagadArgs)
    await world.ready()
    const all = await world.reach(
      'away-all',
      'all are caught up',
      (seen, found) => seen.queued === 0 && seen.started >= 170,
      120
    )
    expectEqual(all.schedule.missed, 0, 'missed of all')
    const last = await world.reach('away-last', 'the last is caught up', (seen) => seen.queued === 0 && seen.missed > 0)
    const none = await world.reach('away-none', 'nothing is caught up', (seen) => seen.queued === 0 && seen.missed > 0)
    const late = (found) => found.sagas.filter((saga) => instantOf(saga) < gone - 120000).length
    expectEqual([late(last) <= 1, late(none)], [true, 0], 'sagas of instants that were missed')
    expect(none.schedule.missed >= last.schedule.missed, 'missed')
    for (const name of ['away-none', 'away-last', 'away-all']) await world.act(name, 'hold')
  })

  await promise('sagactl: create, list, show, next, hold, release, delete', async () => {
    const ctl = (...args) => {
      const done = world.sagactl(['schedules', ...args])
      expectEqual(done.status, 0, `sagactl schedules ${args.join(' ')}: ${done.stderr}`)
      return done.stdout
    }
    expect(
      ctl('create', 'weekly', '--saga', 'tick', '--cron', '0 8 * * MON', '--zone', 'Europe/Berlin').includes('weekly'),
      'create'
    )
    expect(/weekly +active +tick +0 8 \* \* MON Europe\/Berlin/.test(ctl()), 'list', ctl())
    expect(ctl('show', 'weekly').includes('Europe/Berlin'), 'show')
    expectEqual(ctl('next', 'weekly', '--count', '3').trim().split('\n').length, 3, 'next')
    expect(ctl('hold', 'weekly', '--note', 'a holiday').includes('held'), 'hold')
    expect(ctl('release', 'weekly', '--note', 'over').includes('active'), 'release')
    expect(ctl('delete', 'weekly').includes('deleted'), 'delete')
    expectEqual(world.sagactl(['schedules', 'show', 'weekly']).status, 3, 'it is gone')
    expectEqual(world.sagactl(['schedules', 'hold', 'nightly']).status, 2, 'a hold says why')
  })
})
