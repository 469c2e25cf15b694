// Makes the package: the types from the OpenAPI document, the JavaScript and its declarations, and a tarball that
// installs without a network.
//
//   build.mjs --packages DIR --out DIR
//
// --packages is the folder in which tools/test has installed tests/package-lock.json. The sources are copied to --out,
// because what is made does not belong into the repository. Prints the path of the tarball.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const text = { type: 'string' }
const { values: options } = parseArgs({ options: { packages: text, out: text } })
if (!options.packages || !options.out) {
  console.error('usage: build.mjs --packages DIR --out DIR')
  process.exit(2)
}
const installed = join(resolve(options.packages), 'node_modules')
const out = resolve(options.out)
const bundled = ['openapi-fetch', 'openapi-typescript-helpers']
const compiledWith = ['@types', 'undici-types']

for (const name of ['openapi-typescript', 'typescript', ...bundled, ...compiledWith])
  if (!existsSync(join(installed, name))) {
    console.error(`${name} is not in ${installed}; tools/test installs it`)
    process.exit(1)
  }

function run(program, args) {
  try {
    return execFileSync(program, args, { cwd: out, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    console.error(`${program} ${args.join(' ')}\n${error.stdout ?? ''}${error.stderr ?? ''}`)
    process.exit(1)
  }
}

mkdirSync(out, { recursive: true })
for (const name of ['src', 'dist', 'node_modules']) rmSync(join(out, name), { recursive: true, force: true })
for (const name of ['src', 'package.json', 'tsconfig.json', 'README.md'])
  cpSync(join(here, name), join(out, name), { recursive: true })
cpSync(join(here, '..', '..', '..', 'LICENSE'), join(out, 'LICENSE'))
for (const name of [...bundled, ...compiledWith])
  cpSync(join(installed, name), join(out, 'node_modules', name), { recursive: true })

const openapi = join(here, '..', '..', '..', 'schema', 'openapi.json')
const types = join(out, 'src', 'schema.d.ts')
run(process.execPath, [join(installed, 'openapi-typescript', 'bin', 'cli.js'), openapi, '--output', types])
run(process.execPath, [join(installed, 'typescript', 'bin', 'tsc'), '--project', out])
// The compiler does not copy declarations that it is given.
cpSync(types, join(out, 'dist', 'schema.d.ts'))

for (const name of readdirSync(out)) if (name.endsWith('.tgz')) rmSync(join(out, name))
const packed = JSON.parse(run('npm', ['pack', '--json', '--offline', '--ignore-scripts']))
console.log(join(out, packed[0].filename))
