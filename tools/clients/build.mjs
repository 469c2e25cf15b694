// Makes a package: for the client the types from the OpenAPI document; then the JavaScript and its declarations, and a
// tarball that installs without a network.
//
//   build.mjs [typescript | participant/typescript] --packages DIR --out DIR
//
// --packages is the folder in which tools/test has installed tests/package-lock.json. The sources are copied to --out,
// because what is made does not belong into the repository. Prints the path of the tarball.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = dirname(fileURLToPath(import.meta.url))
const text = { type: 'string' }
const {
  values: options,
  positionals: [name = 'typescript']
} = parseArgs({ options: { packages: text, out: text }, allowPositionals: true })
const source = join(here, name)
if (!options.packages || !options.out || !existsSync(join(source, 'package.json'))) {
  console.error('usage: build.mjs [typescript | participant/typescript] --packages DIR --out DIR')
  process.exit(2)
}
const installed = join(resolve(options.packages), 'node_modules')
const out = resolve(options.out)
const { bundleDependencies = [] } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
const hasSchema = bundleDependencies.includes('openapi-fetch')
const bundled = hasSchema ? ['openapi-fetch', 'openapi-typescript-helpers'] : []
const compiledWith = ['@types', 'undici-types']

for (const name of ['typescript', ...(hasSchema ? ['openapi-typescript'] : []), ...bundled, ...compiledWith])
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
for (const name of ['src', 'package.json']) cpSync(join(source, name), join(out, name), { recursive: true })
cpSync(join(here, 'tsconfig.json'), join(out, 'tsconfig.json'))
for (const near of ['README.md', 'participant.sql'])
  for (const folder of [dirname(source), source])
    if (folder !== here && existsSync(join(folder, near))) cpSync(join(folder, near), join(out, near))
cpSync(join(here, '..', '..', 'LICENSE'), join(out, 'LICENSE'))
for (const name of [...bundled, ...compiledWith])
  cpSync(join(installed, name), join(out, 'node_modules', name), { recursive: true })

const openapi = join(here, '..', '..', 'schema', 'openapi.json')
const types = join(out, 'src', 'schema.d.ts')
if (hasSchema)
  run(process.execPath, [join(installed, 'openapi-typescript', 'bin', 'cli.js'), openapi, '--output', types])
run(process.execPath, [join(installed, 'typescript', 'bin', 'tsc'), '--project', out])
// The compiler does not copy declarations that it is given.
if (hasSchema) cpSync(types, join(out, 'dist', 'schema.d.ts'))

for (const name of readdirSync(out)) if (name.endsWith('.tgz')) rmSync(join(out, name))
const packed = JSON.parse(run('npm', ['pack', '--json', '--offline', '--ignore-scripts']))
console.log(join(out, packed[0].filename))
