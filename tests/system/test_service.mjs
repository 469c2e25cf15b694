// sagad under a service manager, as systemd starts it: it says when it is ready, that it lives, that it read its
// settings again, and that it stops.
import { chmodSync, chownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, freePort, promise, run, sleep } from '../lib/world.mjs'

await run(new World(), async (world) => {
  const path = join(world.directory, 'notify')
  const heard = () => readFileSync(world.log('manager'), 'utf8').trimEnd().split('\n').slice(1)
  const until = async (what) => {
    while (!heard().some((line) => line.includes(what))) await sleep(20)
  }
  const times = (what) => heard().filter((line) => line.includes(what)).length

  world.launch('manager', process.env.NOTIFY_LISTENER, [path])
  await promise('it listens', async () => {
    while (!readFileSync(world.log('manager'), 'utf8').includes('listening')) await sleep(20)
  })
  chmodSync(path, 0o777) // sagad may run as another user
  if (world.user.uid !== undefined) chownSync(path, world.user.uid, world.user.gid)
  process.env.NOTIFY_SOCKET = path
  process.env.WATCHDOG_USEC = '3000000'

  await promise('without its database it lives, and is not ready', async () => {
    world.port = await freePort()
    world.launchSagad()
    await until('WATCHDOG=1')
    await until('STATUS=not ready: ')
    expectEqual(times('READY=1'), 0, 'READY')
    world.sagad.kill('SIGKILL')
    await world.sagad.ended
  })
  await promise('READY comes when it can work, and a line about what it does', async () => {
    delete process.env.NOTIFY_SOCKET // PostgreSQL would tell the manager of itself
    await world.startPostgres()
    process.env.NOTIFY_SOCKET = path
    world.migrate()
    await world.startSagad()
    await until('READY=1')
    await until('STATUS=ready: 64 shards, 0 sagas in memory, 0 cases wait for a person')
    expectEqual(times('READY=1'), 1, 'READY')
  })
  await promise('SIGHUP: it says that it reads its settings again, and that it has', async () => {
    world.sagad.kill('SIGHUP')
    await until('RELOADING=1 MONOTONIC_USEC=')
    while (times('READY=1') < 2) await sleep(20)
  })
  await promise('SIGTERM: it says that it stops, and ends with 0', async () => {
    expectEqual(times('STOPPING=1'), 0, 'STOPPING')
    world.sagad.kill('SIGTERM')
    expectEqual((await world.sagad.ended).code, 0, 'exit code')
    await until('STOPPING=1')
    expectEqual(times('STOPPING=1'), 1, 'STOPPING')
  })
  await promise('an address that nobody listens at is a wrong setting', async () => {
    process.env.NOTIFY_SOCKET = join(world.directory, 'nobody')
    const ended = world.sagadOnce([])
    expectEqual(ended.status, 2, 'exit code')
    expect(ended.stderr.includes('service manager'), 'the sentence', ended.stderr)
  })
})
