// The TypeScript of the console has the types that it says: esbuild only strips them.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../lib/world.mjs'
import { consolePackages } from './packages.mjs'

const packages = consolePackages()
const folder = mkdtempSync(join(tmpdir(), 'sagad-test-types-'))
try {
  // The compiler looks for packages beside the sources, where none may lie.
  for (const name of ['src', 'tsconfig.json'])
    cpSync(join(root, 'tools', 'console', name), join(folder, name), { recursive: true })
  symlinkSync(join(packages, 'node_modules'), join(folder, 'node_modules'))
  const { status, stdout, stderr } = spawnSync(join(packages, 'node_modules', '.bin', 'tsc'), ['-p', folder], {
    encoding: 'utf8'
  })
  console.log(`${stdout}${stderr}`)
  process.exitCode = status === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
