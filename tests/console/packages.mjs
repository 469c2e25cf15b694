// Finds the packages of the console where tools/console/build.mjs has put them. A test that cannot have them is
// skipped.
import { spawnSync } from 'node:child_process'

const skipped = 77

export function skip(why) {
  console.log(`# skipped: ${why}`)
  process.exit(skipped)
}

export function consolePackages() {
  const { CONSOLE_BUILD, CONSOLE_PACKAGES } = process.env
  const asked = spawnSync(process.execPath, [CONSOLE_BUILD, '--packages', CONSOLE_PACKAGES, '--install'], {
    encoding: 'utf8'
  })
  return asked.status === 0 ? asked.stdout.trim() : skip('npm cannot fetch the packages of tools/console')
}
