// Builds and packs a package of tools/clients, and installs it as its users do.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/world.mjs'

export const packages = process.env.NODE_MODULES ?? join(root, 'build', 'npm', 'node_modules')

// Ends the test where tools/test could not install what it needs.
export function needs(name) {
  if (existsSync(join(packages, name))) return
  console.log(`skipped: ${name} is not installed (tools/test does it)`)
  process.exit(77)
}

// Installs the package without a network in an empty folder, and returns the folder.
export function install(world, name) {
  const built = execFileSync(
    process.execPath,
    [
      ...[join(root, 'tools', 'clients', 'build.mjs'), name],
      ...['--packages', join(packages, '..'), '--out', join(world.directory, 'package')]
    ],
    { encoding: 'utf8' }
  ).trim()
  const folder = join(world.directory, 'program')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const npm = ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', built]
  execFileSync('npm', npm, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return folder
}
