// The examples of schema/examples/, each with every possible ending, against the real shop. The shop's ledger shows
// what is undone, and in which order. (The example transfer.json has its own test.)
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  approvalOf,
  decide,
  done,
  finish,
  happened,
  logOf,
  nothingStands,
  order,
  replayAll,
  signal,
  statuses,
  stepOf,
  undone,
  waitsAt
} from '../lib/language.mjs'
import { World, expect, expectEqual, leaves, promise, quick, root, run, sleep } from '../lib/world.mjs'

class Examples extends World {
  // Returns the example under another name and with shorter times, because nobody waits two days in a test.
  hasty(file, saga, times) {
    const document = this.example(file)
    const wanted = document.sagas.find((one) => one.name === saga)
    let text = JSON.stringify({ ...wanted, name: `${saga}_hasty` })
    for (const [from, to] of Object.entries(times)) text = text.replaceAll(`"${from}"`, `"${to}"`)
    return { sagas: [JSON.parse(text)] }
  }

  write(name, text) {
    const path = join(this.directory, name)
    writeFileSync(path, text)
    return path
  }

  support(name, customer, sku = 'kettle') {
    return spawnSync('bash', [join(root, 'schema', 'examples', 'support.sh'), name, customer, sku], {
      encoding: 'utf8',
      timeout: 60000,
      env: {
        ...process.env,
        PATH: `${dirname(this.sagactlPath)}:${process.env.PATH}`,
        SAGACTL_SERVER: `http://127.0.0.1:${this.port}`
      }
    })
  }

  async caseOf(name) {
    const found = await this.api('GET', `/v1/sagas?business_id=case-${name}`)
    expect(found.json.items.length === 1, `one saga of the case ${name}`, found.text)
    return this.saga(found.json.items[0].id)
  }
}

await run(new Examples(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()

  await promise('every example is accepted by check, alone, and by apply, all together', async () => {
    const files = readdirSync(join(root, 'schema', 'examples'))
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(root, 'schema', 'examples', name))
    const applied = world.sagactl(['apply', ...files])
    expect(applied.status === 0, 'sagactl apply of all', applied.stdout + applied.stderr)
    for (const name of [
      'gift',
      'first',
      'shop',
      'registry',
      'bench',
      'trip',
      'onboarding',
      'support',
      'transfer',
      'language'
    ]) {
      const checked = spawnSync(world.sagactlPath, ['check', join(root, 'schema', 'examples', `${name}.json`)], {
        encoding: 'utf8'
      })
      expect(checked.status === 0, `sagactl check ${name}.json`, checked.stdout + checked.stderr)
      await world.define(world.example(`${name}.json`))
    }
  })
  await promise('every saga of the examples ends well at each of its failure points, on the model', () => {
    for (const name of ['gift', 'first', 'shop', 'trip', 'onboarding', 'transfer', 'language']) {
      const proven = spawnSync(world.sagactlPath, ['prove', join(root, 'schema', 'examples', `${name}.json`)], {
        encoding: 'utf8',
        maxBuffer: 1 << 26
      })
      expect(proven.status === 0, `sagactl prove ${name}.json`, proven.stdout.slice(0, 1500) + proven.stderr)
    }
  })

  // --- order: a terminal mail ---

  const orderOf = (id, more = {}) =>
    world.start('order', { order_id: id, sku: 'kettle', amount: 4900, email: `${id}@x.example`, ...more })
  await promise('order: completed; nothing left; declined; bounced: each undone in reverse', async () => {
    const good = await finish(world, await orderOf('o1'), 'completed')
    expectEqual(happened(world, good), ['do reserve', 'do charge', 'do confirm'], 'what happened')
    expectEqual(
      good.output,
      { reservation: stepOf(good, 'reserve').result.id, charge: stepOf(good, 'charge').result.charge_id },
      'the output'
    )
    for (const [more, what] of [
      [{ sku: 'none' }, []],
      [{ email: 'declined' }, ['do reserve', 'undo reserve']],
      [{ email: 'bounce@o4.example' }, ['do reserve', 'do charge', 'undo charge', 'undo reserve']]
    ]) {
      const saga = await finish(world, await orderOf(`o-${what.length}`, more), 'compensated')
      expectEqual(happened(world, saga), what, 'what happened')
    }
  })
  await promise(
    'order: a mail that may have gone out is a question to a person, whose answer ends it either way',
    async () => {
      for (const [as, status] of [
        ['happened', 'completed'],
        ['not_happened', 'compensated']
      ]) {
        await world.fault({
          route: 'mails',
          mode: as === 'happened' ? 'reset-after-effect' : 'reset-before-effect',
          match: `lost-${as}`
        })
        const id = await orderOf(`lost-${as}`)
        const waiting = await finish(world, id, 'escalated')
        expectEqual(stepOf(waiting, 'confirm').status, 'unknown', 'the mail')
        expectEqual((await world.resolve(id, { action: 'resolve', as })).status, 200, 'the answer to the verdict')
        const saga = await finish(world, id, status)
        if (status === 'compensated') expectEqual(undone(world, saga), ['charge', 'reserve'], 'what was undone')
      }
      await world.noFaults()
    }
  )

  // --- trip: three side by side, and a person above a limit ---

  const tripOf = (name, more = {}, saga = 'trip') =>
    world.start(saga, {
      traveller: `${name}@x.example`,
      flight: `LH-${name}`,
      hotel: `grand-${name}`,
      nights: 2,
      car: `van-${name}`,
      amount: 90000,
      ...more
    })
  const held = ['car', 'flight', 'hotel']
  await promise('trip: below the limit nobody is asked; without a car, or with none left, it goes on', async () => {
    const all = await finish(world, await tripOf('t1'), 'completed')
    expectEqual(
      statuses(all),
      {
        flight: 'completed',
        hotel: 'completed',
        car: 'completed',
        approval: 'skipped',
        pay: 'completed',
        tickets: 'completed'
      },
      'the steps'
    )
    expectEqual(done(world, all).slice(3), ['pay', 'tickets'], 'what came last')
    expectEqual(all.output.approved_by, null, 'who approved')
    const walks = await finish(world, await tripOf('t2', { car: undefined }), 'completed')
    expectEqual(stepOf(walks, 'car').status, 'skipped', 'the car')
    const none = await finish(world, await tripOf('t3', { car: 'none' }), 'completed')
    expectEqual([stepOf(none, 'car').status, none.output.car], ['failed', null], 'the car')
  })
  await promise('trip: the three are under way at the same time', async () => {
    await world.fault({ route: 'reservations', mode: 'slow', ms: 700, times: 3, match: 'together' })
    const before = Date.now()
    const saga = await finish(world, await tripOf('together'), 'completed')
    const starts = held.map((id) => Date.parse(stepOf(saga, id).started_at))
    const ends = held.map((id) => Date.parse(stepOf(saga, id).ended_at))
    expect(Math.max(...starts) < Math.min(...ends), 'each began before the first ended', {
      starts,
      ends,
      took: Date.now() - before
    })
    await world.noFaults()
  })
  await promise('trip: above the limit a person sees what it is about, and approves', async () => {
    const id = await tripOf('t4', { amount: 200000 })
    const waiting = await waitsAt(world, id, 'approval')
    expectEqual(waiting.status, 'waiting', 'the saga')
    const approval = await approvalOf(world, id)
    expectEqual(
      approval.show,
      { traveller: 't4@x.example', amount: 200000, flight: 'LH-t4', hotel: 'grand-t4', car: true },
      'what is shown'
    )
    expectEqual((await decide(world, approval, 'approve', { hash: approval.hash })).status, 200, 'the decision')
    const saga = await finish(world, id, 'completed')
    expectEqual(stepOf(saga, 'approval').result.decision, 'approve', 'the result of the approval')
    expectEqual(saga.output.approved_by, stepOf(saga, 'approval').result.actor, 'who approved')
  })
  await promise('trip: refused, or not decided in time: what was held is given back', async () => {
    const refused = await tripOf('t5', { amount: 200000 })
    expectEqual((await decide(world, await approvalOf(world, refused), 'refuse')).status, 200, 'the decision')
    const saga = await finish(world, refused, 'compensated')
    expectEqual(undone(world, saga).sort(), held, 'what was undone')
    nothingStands(world, saga)
    await world.define(world.hasty('trip.json', 'trip', { '2d': '700ms' }))
    const late = await finish(world, await tripOf('t6', { amount: 200000 }, 'trip_hasty'), 'compensated')
    expectEqual(stepOf(late, 'approval').error.code, 'timeout', 'the approval')
    expectEqual(undone(world, late).sort(), held, 'what was undone')
    const open = await world.api('GET', '/v1/approvals?status=open')
    expectEqual(open.json.items, [], 'open approvals')
  })
  await promise('trip: no seat, no room, no money, no mailbox: undone, the payment first', async () => {
    for (const [more, undo] of [
      [{ traveller: 'declined' }, held],
      [{ traveller: 'bounce@t.example' }, ['pay', ...held]]
    ]) {
      const saga = await finish(world, await tripOf(`u-${undo.length}`, more), 'compensated')
      const found = undone(world, saga)
      expectEqual([...found].sort(), [...undo].sort(), 'what was undone')
      if (undo[0] === 'pay') expectEqual(found[0], 'pay', 'what was undone first')
      nothingStands(world, saga)
    }
    for (const none of ['flight', 'hotel']) {
      // the other sagas had begun by then, or never begin
      const saga = await finish(world, await tripOf(`v-${none}`, { [none]: 'none' }), 'compensated')
      expectEqual([stepOf(saga, none).status, stepOf(saga, 'approval').status], ['failed', 'pending'], 'the steps')
      nothingStands(world, saga)
    }
  })
  await promise('trip: aborted while a person is asked: undone, and the question is closed', async () => {
    const id = await tripOf('t7', { amount: 200000 })
    const approval = await approvalOf(world, id)
    expect([200, 202].includes((await order(world, id, 'abort')).status), 'the answer to abort')
    const saga = await finish(world, id, 'compensated')
    expectEqual(undone(world, saga).sort(), held, 'what was undone')
    expectEqual((await decide(world, approval, 'approve')).status, 409, 'a decision that comes too late')
  })

  // --- support: an agent's case ---

  await promise('support: the calls of the script complete one saga; run again it is the same case', async () => {
    for (let round = 0; round < 2; round++) {
      const ran = world.support('c1', 'ada@x.example')
      expect(ran.status === 0, 'the script', `${ran.status} ${ran.stdout} ${ran.stderr}`)
    }
    const saga = await world.caseOf('c1')
    expectEqual([saga.status, saga.steps.length], ['completed', 4], 'the saga')
    expectEqual(
      world
        .ledger()
        .filter((line) => line.effect === 1 && line.body?.request === 'c1')
        .map((line) => line.kind),
      ['reserve', 'charge'],
      'what happened'
    )
    expectEqual(
      world.ledger().filter((line) => line.effect === 1 && line.kind === 'mail' && line.body.to === 'ada@x.example')
        .length,
      1,
      'the mails'
    )
  })
  await promise('support: the agent gives up, and what it did is undone in reverse', async () => {
    for (const [name, customer, sku, undo] of [
      ['c2', 'declined', 'kettle', ['release']],
      ['c3', 'bounce@c3.example', 'kettle', ['refund', 'release']],
      ['c4', 'ada@x.example', 'none', []]
    ]) {
      const ran = world.support(name, customer, sku)
      expect(ran.status === 8, 'the script', `${ran.status} ${ran.stdout} ${ran.stderr}`)
      const saga = await world.caseOf(name)
      expectEqual(saga.status, 'compensated', 'the saga')
      const keys = new Set(saga.steps.map((step) => step.compensation?.key).filter(Boolean))
      expectEqual(
        world
          .ledger()
          .filter((line) => line.effect === 1 && keys.has(line.key))
          .map((line) => line.kind),
        undo,
        'what was undone'
      )
    }
  })
  await promise('support: an agent that is never heard of again is undone at the deadline', async () => {
    const opened = await world.api('POST', '/v1/sagas', { open: true, deadline: '5s' })
    const called = await world.api('POST', `/v1/sagas/${opened.json.id}/calls`, {
      tool: 'support.replace',
      args: { request: 'c5', sku: 'kettle', qty: 1 }
    })
    expectEqual(called.status, 200, 'the call')
    nothingStands(world, await finish(world, opened.json.id, 'compensated'))
  })

  // --- onboarding: fan-out, a child saga, a signature, and a follow-up ---

  const onboard = (name, more = {}, saga = 'onboarding') =>
    world.start(saga, {
      tenant: name,
      plan: 'small',
      region: `eu-${name}`,
      people: [`a-${name}`, `b-${name}`, `c-${name}`],
      ...more
    })
  const greetings = async (name) =>
    (await world.api('GET', `/v1/sagas?saga=greeting&business_id=${encodeURIComponent(`greeting:${name}`)}`)).json.items
  await promise('onboarding: everything is there, the contract is signed, and one greeting follows', async () => {
    const id = await onboard('acme')
    expectEqual((await waitsAt(world, id, 'contract')).status, 'waiting', 'the saga')
    expectEqual(await greetings('acme'), [], 'greetings before it is complete')
    for (let times = 0; times < 2; times++) {
      const told = await signal(world, id, 'contract_signed', { by: 'ada' }, 'mail-17')
      expect(told.status < 300, 'the answer to the signal', told.text)
      if (times === 0) await finish(world, id, 'completed')
    }
    const saga = await world.saga(id)
    expectEqual(
      statuses(saga),
      {
        tenant: 'completed',
        workspace: 'completed',
        'workspace/storage': 'completed',
        'workspace/database': 'completed',
        seats: 'completed',
        'seats#0': 'completed',
        'seats#1': 'completed',
        'seats#2': 'completed',
        contract: 'completed'
      },
      'the steps'
    )
    expectEqual(
      saga.output.workspace,
      { storage: stepOf(saga, 'workspace/storage').result.id, database: stepOf(saga, 'workspace/database').result.id },
      'what the child gave'
    )
    expectEqual(
      saga.output.seats,
      [0, 1, 2].map((i) => stepOf(saga, `seats#${i}`).result.id),
      'what the elements gave, in order'
    )
    for (const end = Date.now() + 20000; (await greetings('acme')).length === 0; await sleep(50))
      expect(Date.now() < end, 'a greeting was started')
    await finish(world, (await greetings('acme'))[0].id, 'completed')
    expectEqual((await greetings('acme')).length, 1, 'greetings')
    const mail = world
      .ledger()
      .filter((line) => line.effect === 1 && line.kind === 'mail' && line.body.subject === 'Welcome, acme')
    expectEqual(
      mail.map((line) => line.body.to),
      ['a-acme'],
      'the mails'
    )
  })
  await promise(
    'onboarding: the tenant is locked: a second one for it fails at once, and may come when the first is over',
    async () => {
      const first = await onboard('beta')
      await waitsAt(world, first, 'contract')
      const second = await finish(world, await onboard('beta', { plan: 'large' }), 'compensated')
      expectEqual(happened(world, second), [], 'what the second did')
      expect(
        (await logOf(world, second.id)).some(
          (entry) => entry.type === 'saga.failing' && JSON.stringify(entry).includes('locked')
        ),
        'why it failed'
      )
      await signal(world, first, 'contract_signed', { by: 'ada' })
      await finish(world, first, 'completed')
      await waitsAt(world, await onboard('beta', { plan: 'large' }), 'contract')
    }
  )
  const everything = ['seats#2', 'seats#1', 'seats#0', 'workspace/database', 'workspace/storage', 'tenant']
  await promise(
    'onboarding: a seat that is not there undoes the seats, the workspace and the tenant, in reverse',
    async () => {
      const saga = await finish(
        world,
        await onboard('gamma', { people: ['a-gamma', 'b-gamma', 'none'] }),
        'compensated'
      )
      expectEqual(undone(world, saga), everything.slice(1), 'what was undone')
      nothingStands(world, saga)
      expectEqual(await greetings('gamma'), [], 'greetings')
    }
  )
  await promise('onboarding: a child that fails is undone with the saga', async () => {
    const saga = await finish(world, await onboard('delta', { region: 'none' }), 'compensated')
    expectEqual(
      happened(world, saga),
      ['do tenant', 'do workspace/storage', 'undo workspace/storage', 'undo tenant'],
      'what happened'
    )
    expectEqual(stepOf(saga, 'seats').status, 'pending', 'the seats')
  })
  await promise(
    'onboarding: aborted while it waits, or not signed in time: all of it is undone in reverse',
    async () => {
      const id = await onboard('epsilon')
      await waitsAt(world, id, 'contract')
      await order(world, id, 'abort')
      expectEqual(undone(world, await finish(world, id, 'compensated')), everything, 'what was undone')
      await world.define(world.hasty('onboarding.json', 'onboarding', { '30d': '600ms' }))
      const late = await finish(world, await onboard('zeta', {}, 'onboarding_hasty'), 'compensated')
      expectEqual(stepOf(late, 'contract').error.code, 'timeout', 'the contract')
      expectEqual(undone(world, late), everything, 'what was undone')
      const again = await onboard('zeta') // the lock is free again
      await waitsAt(world, again, 'contract')
    }
  )
  await promise('what happened to them, as sagactl record writes it down, happens again on stage', async () => {
    const definitions = [world.hasty('trip.json', 'trip', { '2d': '700ms' })]
    definitions.push(world.hasty('onboarding.json', 'onboarding', { '30d': '600ms' }))
    const files = definitions.map((document, i) => world.write(`hasty-${i}.json`, JSON.stringify(document)))
    for (const name of ['shop', 'trip', 'onboarding']) files.push(join(root, 'schema/examples', `${name}.json`))
    const { items } = (await world.api('GET', '/v1/sagas?status=completed,compensated&limit=500')).json
    const all = items.filter((saga) => /^(order|trip|onboarding|greeting)/.test(saga.saga)) // no agent's
    const ended = quick ? [...new Map(all.map((saga) => [`${saga.saga} ${saga.status}`, saga])).values()] : all
    expect(all.length > 20 && ended.length > 6, 'there are many', all.length)
    for (const saga of ended) {
      const recorded = world.sagactl(['record', saga.id])
      expect(recorded.status === 0, `sagactl record ${saga.id}`, recorded.stderr)
      files.push(world.write(`${saga.id}.json`, recorded.stdout))
    }
    const played = spawnSync(world.sagactlPath, ['test', ...files], { encoding: 'utf8', maxBuffer: 1 << 26 })
    const differs = played.stdout.split('\n').filter((line) => !line.startsWith('ok '))
    expect(played.status === 0, 'sagactl test', differs.join('\n') + played.stderr)
    expect(played.stdout.includes(`\n1..${ended.length}\n`), 'all were played', played.stdout)
  })
  await promise('nothing happened twice, and every log folds to the stored state', async () => {
    const seen = new Set()
    for (const line of world.ledger().filter((one) => one.effect === 1 && one.key)) {
      expect(!seen.has(line.key), 'two effects under one key', line)
      seen.add(line.key)
    }
    await sleep(200)
    await replayAll(world)
  })
  await leaves(world)
})
