// `sagactl rekey` runs `sagad rekey`: the one in its own folder, or else the first one of the PATH. It asks no server,
// says what sagad says, and ends with sagad's exit code.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { World, expect, expectEqual, promise, run } from '../lib/world.mjs'

const key = (byte) => Buffer.alloc(32, byte).toString('base64')
const k1 = { k1: key(1) }
const k2 = { k2: key(2) }
const canary = 'secret-of-a-customer'

await run(new World(), async (world) => {
  const keysFile = (name, active, keys) => {
    const path = join(world.directory, `${name}.json`)
    writeFileSync(path, JSON.stringify({ active, keys }), { mode: 0o600 })
    return path
  }
  const folder = (name) => {
    const path = join(world.directory, name)
    mkdirSync(path)
    return path
  }
  // A sagactl without a sagad beside it, and one with a program beside it that says how it was called.
  const alone = folder('alone')
  const together = folder('together')
  for (const place of [alone, together]) copyFileSync(world.sagactlPath, join(place, 'sagactl'))
  writeFileSync(join(together, 'sagad'), '#!/bin/sh\necho "beside: $*"\nexit 7\n')
  chmodSync(join(together, 'sagad'), 0o755)

  const rekey = (place, args, PATH = dirname(world.sagadPath)) => {
    const env = { ...process.env, PATH, SAGACTL_SERVER: 'http://127.0.0.1:1' } // where nobody answers
    return spawnSync(join(place, 'sagactl'), ['rekey', ...args], { encoding: 'utf8', env, timeout: 120000 })
  }
  const rekeyTo = (path) => rekey(alone, ['--database', world.dsn, '--payload-keys', path])
  const rowsWith = (text) =>
    Number(world.sql(`select count(*) from sagad.log where position('${text}'::bytea in payload) > 0`))

  await promise('sagactl runs the sagad of its own folder with all arguments, and ends as that ends', () => {
    const args = ['--database', 'host=a b', '--payload-keys', '/some/file']
    const { status, stdout } = rekey(together, args)
    expectEqual([status, stdout], [7, `beside: rekey ${args.join(' ')}\n`], 'the program in the same folder')
  })

  await promise('without any sagad it says where one is needed', () => {
    const { status, stderr } = rekey(alone, ['--database', 'x', '--payload-keys', 'y'], folder('empty'))
    expectEqual(status, 1, 'exit code')
    expect(/sagad cannot be run.*\n.*hint: run `sagad rekey`/.test(stderr), 'the sentence', stderr)
  })

  await promise('its help needs neither sagad nor a server', () => {
    const { status, stdout } = rekey(alone, ['--help'], folder('nothing'))
    expect(status === 0 && stdout.includes('sagactl rekey --database DSN'), 'help', stdout)
  })

  await world.startPostgres()
  await world.startSagad()
  await world.define({ sagas: [{ name: 'waits', steps: [{ id: 'go', signal: { name: 'go', timeout: '1h' } }] }] })
  const { json } = await world.api('POST', '/v1/sagas', { saga: 'waits', id: 'order-1', input: { canary } })
  expect(rowsWith(canary) > 0, 'the log has the canary in plain before')

  await promise(
    'what is plain is sealed while an engine that reads both works, and it says how far it is',
    async () => {
      world.sagad.kill('SIGTERM')
      await world.sagad.ended
      const file = keysFile('to-k1', 'k1', k1)
      world.launchSagad(['--payload-keys', file])
      await world.ready()
      const { status, stdout, stderr } = rekeyTo(file)
      expectEqual(status, 0, stderr)
      expect(/sagad\.log\.payload: \d+ rows, [1-9]\d* rewritten/.test(stdout + stderr), 'progress', stdout + stderr)
      expectEqual([rowsWith(canary), rowsWith('"k1.') > 0], [0, true], 'plain rows, and sealed ones')
      expectEqual((await world.read(`/v1/sagas/${json.id}`)).json.input, { canary }, 'what the API shows')
    }
  )

  await promise('after a change of the key nothing is left under the old one', () => {
    const { status, stderr } = rekeyTo(keysFile('to-k2', 'k2', { ...k1, ...k2 }))
    expectEqual(status, 0, stderr)
    expectEqual([rowsWith('"k1.'), rowsWith('"k2.') > 0], [0, true], 'rows under k1, and under k2')
  })

  await promise('without the keys that the database needs it changes nothing', () => {
    const { status, stderr } = rekeyTo(keysFile('to-k3', 'k3', { k3: key(3) }))
    expect(status === 2 && /sealed under the key k1, which sagad does not have/.test(stderr), 'it', status + stderr)
    expectEqual(rowsWith('"k3.'), 0, 'rows under k3')
  })
})
