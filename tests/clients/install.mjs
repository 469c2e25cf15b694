// Builds and packs a package of tools/clients, and installs it as its users do.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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

// The Python of the distribution, which has what tools/test installs; another one may come first in PATH.
export const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'

// Ends the test where there is no Python that can run it.
export function needsPython(...modules) {
  const asked = ['venv', 'ensurepip', ...modules].join(', ')
  const code = `import sys; assert sys.version_info >= (3, 11); import ${asked}`
  const { status } = spawnSync(python, ['-c', code], { stdio: 'ignore' })
  if (status === 0) return
  console.log(`skipped: ${python} is older than 3.11, or lacks one of ${asked} (tools/test installs them)`)
  process.exit(77)
}

// Debian's own pip, unpacked once for this test: installing it into an environment first, or running it from its wheel,
// where its modules are compiled anew each time, would take most of the time.
const wheels = '/usr/share/python-wheels'
const [lying] = existsSync(wheels) ? readdirSync(wheels).filter((file) => file.startsWith('pip-')) : []
let unpacked

function unpackedPip() {
  if (!unpacked) {
    unpacked = mkdtempSync(join(tmpdir(), 'sagad-pip-'))
    process.on('exit', () => rmSync(unpacked, { recursive: true, force: true }))
    execFileSync(python, ['-m', 'zipfile', '-e', join(wheels, lying), unpacked])
  }
  return join(unpacked, 'pip')
}

// Asks pip for something, without a network. `by` is the Python that it is for.
export function pip(asked, by = python) {
  const quiet = ['--no-index', '--disable-pip-version-check']
  const own = lying ? [unpackedPip()] : ['-m', 'pip']
  const options = { cwd: tmpdir(), stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync(by, ['-I', ...own, asked[0], ...quiet, ...asked.slice(1)], options)
}

// Installs the wheel without a network in a new environment in an empty folder, and returns the environment's Python.
export function installPython(world, name, options = []) {
  const out = join(world.directory, 'wheel')
  const build = [join(root, 'tools', 'clients', 'build.py'), name, '--out', out]
  const wheel = execFileSync(python, build, { encoding: 'utf8' }).trim()
  const environment = join(world.directory, 'environment')
  const quiet = { cwd: world.directory, stdio: ['ignore', 'ignore', 'inherit'] }
  execFileSync(python, ['-m', 'venv', ...options, ...(lying ? ['--without-pip'] : []), environment], quiet)
  const installed = join(environment, 'bin', 'python')
  pip(['install', '--no-deps', wheel], installed)
  return installed
}
