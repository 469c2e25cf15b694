// PostgreSQL on a disk that can be filled: a small tmpfs. Only root can mount one.
import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRoot } from '../../lib/programs.mjs'
import { CampaignWorld } from './world.mjs'

const megabytes = 640

export function whyNoDisk() {
  return isRoot() ? undefined : 'only root can mount a small file system'
}

export class DiskWorld extends CampaignWorld {
  async startAll() {
    this.disk = join(this.directory, 'data')
    mkdirSync(this.disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'sagad-campaign', this.disk])
    process.on('exit', () => this.unmount())
    if (this.user.uid !== undefined) chownSync(this.disk, this.user.uid, this.user.gid)
    await this.run(
      join(this.binaries, 'initdb'),
      [
        '-D',
        join(this.disk, 'cluster'),
        '-A',
        'trust',
        '-U',
        'postgres',
        '-E',
        'UTF8',
        '--locale=C.UTF-8',
        '-N',
        '--wal-segsize=1'
      ],
      { ...this.user, cwd: this.directory }
    )
    this.cluster = join(this.disk, 'cluster')
    this.settings = [
      '-c',
      'track_commit_timestamp=on',
      '-c',
      'max_connections=120',
      '-c',
      'max_wal_size=16MB',
      '-c',
      'min_wal_size=2MB'
    ]
    await this.startPostgres()
    await this.startShop()
    await this.startEngineSet()
  }

  async startPostgres() {
    for (let tries = 0; tries < 100; tries++) {
      if (!this.postgres || this.postgres.end) {
        this.postgres = this.launchServer('postgres', this.cluster, this.directory, [
          ...['-c', 'fsync=on', '-c', 'shared_buffers=64MB'],
          ...this.settings
        ])
      }
      if (await this.postgresAnswers(this.directory, 2)) return
    }
    throw new Error('PostgreSQL does not start')
  }

  // Takes all free space.
  fill() {
    const { bavail, bsize } = statfsSync(this.disk)
    const block = Buffer.alloc(1 << 20)
    try {
      for (let left = bavail * bsize; left > 0; left -= block.length)
        writeFileSync(join(this.disk, 'filler'), block.subarray(0, Math.min(left, block.length)), { flag: 'a' })
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error
    }
  }

  empty() {
    rmSync(join(this.disk, 'filler'), { force: true })
  }

  unmount() {
    if (!this.disk) return
    try {
      execFileSync('umount', ['-l', this.disk], { stdio: 'ignore' })
    } catch {
      /* it is not mounted any more */
    }
    this.disk = undefined
  }

  async stop() {
    this.over = true
    this.postgres?.kill('SIGQUIT')
    await this.postgres?.ended
    this.unmount()
    await super.stop()
  }
}
