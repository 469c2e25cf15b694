// The disk of PostgreSQL is full for a while. First statements that need room fail. Then the write-ahead log finds no
// room, and PostgreSQL panics and stays down. The fault makes room again and starts PostgreSQL as an operator would.
import { sleep } from '../../../lib/world.mjs'
import { whyNoDisk } from '../world_disk.mjs'

export const disk_full = {
  name: 'disk_full',
  topology: 'disk',
  weight: 1,
  impossible: whyNoDisk,
  async fire(run) {
    const { world } = run
    world.fill()
    await sleep(500 + run.random() * 2500)
    const panicked = Boolean(world.postgres.end)
    world.empty()
    if (world.postgres.end || !(await world.postgresAnswers(world.directory, 3))) {
      if (!world.postgres.end) await world.killPostgres()
      await world.startPostgres()
    }
    await run.progress('disk_full')
    await sleep(500)
    return panicked ? 'disk_full, PostgreSQL went down' : 'disk_full, statements failed'
  }
}
