// What this machine has and permits.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

export const isRoot = () => process.getuid() === 0
export const has = (program) =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0 || existsSync(`/usr/sbin/${program}`)
