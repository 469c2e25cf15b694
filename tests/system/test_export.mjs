// sagactl export: every document once and whole, wherever the export was cut off.
import { spawn } from 'node:child_process'
import { readFileSync, statSync, truncateSync, copyFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { World, expect, expectEqual, promise, run } from '../lib/world.mjs'

const sagaCount = 230 // three pages
const definitions = (undo) => ({
  tools: [
    { name: 'room.book', builtin: { do: 'echo' }, effect: 'idempotent', compensate: { tool: 'room.cancel' } },
    { name: 'room.cancel', builtin: { do: 'echo' }, effect: 'idempotent', description: undo },
    { name: 'room.ask', builtin: { do: 'fail', outcome: 'no_effect' }, effect: 'idempotent', terminal: true }
  ],
  sagas: [
    { name: 'stay', steps: [{ id: 'book', call: 'room.book', with: { room: '${ .input.room }' } }] },
    {
      name: 'visit',
      steps: [
        { id: 'book', call: 'room.book', with: {} },
        { id: 'ask', call: 'room.ask', with: {} }
      ]
    },
    { name: 'wait', steps: [{ id: 'come', signal: { name: 'come' } }] }
  ]
})

await run(new World(), async (world) => {
  const path = join(world.directory, 'export.jsonl')
  const lines = (file) =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  const documents = (file) => lines(file).filter(({ kind }) => !['export', 'mark', 'end'].includes(kind))
  const end = (id) => world.until(id, ['completed', 'compensated', 'abandoned'])
  const ids = []

  await world.startPostgres()
  await world.startSagad()
  await world.define(definitions('cancels'))
  await world.define(definitions('cancels a room'))
  for (let at = 0; at < sagaCount; at += 50)
    ids.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(50, sagaCount - at) }, (_, i) =>
          world.start((at + i) % 10 ? 'stay' : 'visit', { room: `${at + i}\n"` })
        )
      ))
    )
  for (const id of ids) await end(id)
  const waiting = await world.start('wait', {})
  const asked = await world.api('POST', `/v1/sagas/${waiting}/escalate`, { note: 'for the export' })
  expectEqual(asked.status, 200, 'the escalation')

  await promise('each ended saga is there with its log, as are definitions in all versions, and acts', () => {
    const done = world.sagactl(['export', path])
    expectEqual([done.status, done.stderr], [0, ''], 'exit code and talk')
    const all = lines(path)
    expectEqual([all[0].kind, all.at(-1).kind], ['export', 'end'], 'first and last line')
    const of = (kind) => all.filter((line) => line.kind === kind)
    expectEqual(
      of('saga')
        .map(({ saga }) => saga.id)
        .sort(),
      [...ids].sort(),
      'sagas'
    )
    for (const { saga, log } of of('saga')) {
      expectEqual([log[0].type, log.at(-1).type], ['saga.started', `saga.${saga.status}`], 'the ends of a log')
      expectEqual(
        log.map(({ seq }) => seq),
        log.map((_, i) => i + 1),
        'its numbers'
      )
    }
    const versions = of('tool').map(({ tool }) => [tool.name, tool.version])
    expect(versions.filter(([name]) => name === 'room.cancel').length === 2, 'both versions of a tool', versions)
    expectEqual(of('definition').length >= 3, true, 'definitions')
    expect(
      of('act').some(({ act }) => act.verb === 'escalate'),
      'acts',
      of('act')
    )
    expectEqual(
      of('case').map((line) => line.case.saga),
      [waiting],
      'cases'
    )
    expectEqual(all.at(-1).counts.saga, sagaCount, 'the count')
    expectEqual(statSync(path).mode & 0o777, 0o600, 'who may read it')
  })
  await promise('a file that is there stays as it is, and a whole one is left alone', () => {
    const before = readFileSync(path, 'utf8')
    expectEqual(world.sagactl(['export', path]).status, 2, 'without --resume')
    const again = world.sagactl(['export', path, '--resume'])
    expect(again.status === 0 && again.stdout.includes(`${sagaCount} sagas`), 'with --resume', again.stdout)
    expectEqual(readFileSync(path, 'utf8') === before, true, 'the file')
    expectEqual(world.sagactl(['export', world.log('sagad'), '--resume']).status, 2, 'a file of others')
    expectEqual(world.sagactl(['-n', 'other', 'export', path, '--resume']).status, 2, 'of another namespace')
  })
  await promise('cut off anywhere, it goes on, and nothing is twice or missing', () => {
    const wanted = documents(path)
    const size = statSync(path).size
    for (let cut = 1; cut <= 6; cut++) {
      const torn = join(world.directory, 'torn.jsonl')
      copyFileSync(path, torn)
      truncateSync(torn, Math.floor((size * cut) / 7) + 400)
      const done = world.sagactl(['export', torn, '--resume'])
      expectEqual([done.status, done.stderr], [0, ''], `cut ${cut}`)
      expectEqual(JSON.stringify(documents(torn)) === JSON.stringify(wanted), true, `the documents after cut ${cut}`)
    }
  })
  await promise('an export of what is new has what ended and was asked since, wherever it is cut off', async () => {
    const more = join(world.directory, 'more.jsonl')
    const { next } = lines(path).at(-1)
    const late = [await world.start('stay', { room: 'late' }), await world.start('visit', {})]
    for (const id of late) await end(id)
    const old = await world.api('POST', `/v1/sagas/${waiting}/signals/come`, {})
    expect(old.status < 300, 'the oldest saga goes on', old.text)
    const [{ n }] = (await world.api('GET', '/v1/escalations')).json.items
    const resolved = await world.api('POST', `/v1/escalations/${n}/resolve`, { action: 'abandon', note: 'it is over' })
    expect(resolved.status < 300 || resolved.status === 409, 'its case', resolved.text)
    await end(waiting)
    const done = world.sagactl(['export', more, '--since', next])
    expectEqual([done.status, done.stderr], [0, ''], 'exit code and talk')
    const of = (file, kind) => documents(file).filter((line) => line.kind === kind)
    expectEqual(
      of(more, 'saga')
        .map(({ saga }) => saga.id)
        .sort(),
      [...late, waiting].sort(),
      'what has ended since, whenever it began'
    )
    expect(
      of(more, 'saga').every(({ saga, log }) => log.at(-1).type === `saga.${saga.status}`),
      'with the whole log'
    )
    expect(
      of(more, 'case').some((line) => line.case.saga === waiting && line.case.status !== 'open'),
      'the case that was resolved since',
      of(more, 'case')
    )
    expect(of(more, 'act').length > 0 && of(more, 'tool').length > 0, 'acts and definitions')
    for (const cut of [0.3, 0.6, 0.9]) {
      const torn = join(world.directory, 'torn.jsonl')
      copyFileSync(more, torn)
      truncateSync(torn, Math.floor(statSync(more).size * cut))
      expectEqual(world.sagactl(['export', torn, '--resume']).status, 0, `cut at ${cut}`)
      expectEqual(JSON.stringify(documents(torn)), JSON.stringify(documents(more)), `the documents, cut at ${cut}`)
      expect(lines(torn).at(-1).next, 'and where the next one begins')
    }
  })
  await promise('an instant or an age does as well, and anything else is refused', () => {
    const all = join(world.directory, 'all.jsonl')
    expectEqual(world.sagactl(['export', all, '--since', '2d']).status, 0, 'an age')
    expectEqual(new Set(documents(all).flatMap(({ saga }) => saga?.id ?? [])).size, sagaCount + 3, 'all of them')
    const none = join(world.directory, 'none.jsonl')
    expectEqual(world.sagactl(['export', none, '--since', '2099-01-01T00:00:00Z']).status, 0, 'an instant')
    expectEqual(
      documents(none).filter(({ kind }) => kind !== 'tool' && kind !== 'definition'),
      [],
      'nothing'
    )
    for (const wrong of ['yesterday', '2026-01-01T00:00:00Z/', ''])
      expectEqual(world.sagactl(['export', `${none}.x`, '--since', wrong]).status, 2, `"${wrong}"`)
    expectEqual(world.sagactl(['export', none, '--resume', '--since', '2d']).status, 2, 'with --resume')
  })
  await promise('what is not from sagad is no list of nothing: the export is not whole', async () => {
    const bodies = [
      '',
      'null',
      '[]',
      '"x"',
      '{}',
      '{"items": {}}',
      '{"items": 7}',
      '<html>',
      '{"items": [{"name": "a"}]}'
    ]
    let body
    const stranger = createServer((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(body)
    })
    await new Promise((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    const server = `http://127.0.0.1:${stranger.address().port}`
    for (const [n, one] of bodies.entries()) {
      body = one
      const args = ['export', join(world.directory, `strange-${n}.jsonl`), '--server', server]
      const { code, talk } = await new Promise((resolve) => {
        const child = spawn(world.sagactlPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
        let talk = ''
        child.stderr.setEncoding('utf8').on('data', (text) => (talk += text))
        child.on('close', (code) => resolve({ code, talk }))
      })
      expectEqual(code, 1, `exit code after ${one}`)
      expect(/not as sagad does/.test(talk) && /--resume/.test(talk), 'its words', talk)
    }
    stranger.closeAllConnections()
    stranger.close()
  })
  await promise('without a service it says so at once, and how to go on', async () => {
    await world.kill9()
    const other = join(world.directory, 'other.jsonl')
    const done = world.sagactl(['export', other])
    expectEqual(done.status, 6, 'exit code')
    expect(/cannot be reached/.test(done.stderr) && /--resume/.test(done.stderr), 'its words', done.stderr)
    await world.restart()
    expectEqual(world.sagactl(['export', other, '--resume']).status, 0, 'going on')
    expectEqual(documents(other).filter(({ kind }) => kind === 'saga').length, sagaCount + 3, 'the sagas')
  })
})
