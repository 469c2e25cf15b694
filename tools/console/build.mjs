// Makes the console: bundles src/ with esbuild, compresses what comes out, and writes console_files.c and
// console_files.S, which compile it into sagad. engine/api/meson.build calls this.
//
//   build.mjs --packages DIR --out DIR --depfile FILE --none FILE --version TEXT (--required | --optional)
//
// The packages of package-lock.json lie in a folder of --packages that is named by the lock file, so that all builds
// share them; `npm ci` fetches them when they are missing. With --optional a machine that cannot fetch them gets a
// sagad without a console.
//
//   build.mjs --packages DIR --install         only fetches the packages, and prints their folder
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'

const here = dirname(fileURLToPath(import.meta.url))
const text = { type: 'string' }
const flag = { type: 'boolean' }
const { values: options } = parseArgs({
  options: {
    packages: text,
    out: text,
    depfile: text,
    none: text,
    version: text,
    required: flag,
    optional: flag,
    install: flag
  }
})
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

// Returns the folder that node_modules lies in. Several builds may come here at once: each installs into a folder of
// its own, and the first to end gives it its name.
function packages() {
  const lock = readFileSync(join(here, 'package-lock.json'))
  const folder = join(resolve(options.packages), sha256(lock).slice(0, 16))
  if (existsSync(folder)) return folder
  mkdirSync(options.packages, { recursive: true })
  const fresh = mkdtempSync(join(options.packages, 'fresh-'))
  try {
    for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(here, name), join(fresh, name))
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', fresh], {
      stdio: ['ignore', 'ignore', 'inherit']
    })
    renameSync(fresh, folder)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}

// The license of what goes into the bundle asks for its text in every copy.
function licenses(folder) {
  const text = readFileSync(join(folder, 'node_modules', 'preact', 'LICENSE'), 'utf8')
  return Buffer.from(`This console has parts of preact:\n\n${text}`)
}

async function bundle(folder) {
  const esbuild = createRequire(join(folder, 'package.json'))('esbuild')
  const made = await esbuild.build({
    absWorkingDir: here,
    entryPoints: { app: 'src/main.tsx' },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    nodePaths: [join(folder, 'node_modules')],
    legalComments: 'eof',
    write: false,
    metafile: true,
    outdir: 'out',
    logLevel: 'warning'
  })
  const output = (ending) => Buffer.from(made.outputFiles.find(({ path }) => path.endsWith(ending)).contents)
  const version = `${options.version} ${sha256(Buffer.concat([output('.js'), output('.css')])).slice(0, 12)}`
  const page = readFileSync(join(here, 'src', 'index.html'), 'utf8').replaceAll('@VERSION@', version)
  return {
    inputs: Object.keys(made.metafile.inputs)
      .filter((path) => path.startsWith('src/'))
      .concat(['src/index.html', 'src/icon.svg', 'package-lock.json'])
      .map((path) => join(here, path)),
    files: [
      { name: '', type: 'text/html; charset=utf-8', bytes: Buffer.from(page) },
      { name: 'app.js', type: 'text/javascript; charset=utf-8', bytes: output('.js') },
      { name: 'app.css', type: 'text/css; charset=utf-8', bytes: output('.css') },
      { name: 'licenses.txt', type: 'text/plain; charset=utf-8', bytes: licenses(folder) },
      { name: 'icon.svg', type: 'image/svg+xml', bytes: readFileSync(join(here, 'src', 'icon.svg')) }
    ]
  }
}

function writeSources(files) {
  const out = resolve(options.out)
  let declared = ''
  let rows = ''
  let assembled = '    .section .rodata\n'
  files.forEach(({ name, type, bytes }, i) => {
    const packed = gzipSync(bytes, { level: 9 })
    const path = join(out, `console_${i}.gz`)
    writeFileSync(path, packed)
    declared += `extern const char console_${i}[], console_${i}_end[];\n`
    rows += `    {"${name}", "${type}", "\\"${sha256(packed).slice(0, 40)}\\"", console_${i}, console_${i}_end},\n`
    // The checksum is what makes this file another one when the bytes are.
    assembled += `    /* ${sha256(packed)} */\n    .global console_${i}\n    .global console_${i}_end\n`
    assembled += `console_${i}:\n    .incbin "${path}"\nconsole_${i}_end:\n    .byte 0\n`
  })
  writeFileSync(
    join(out, 'console_files.c'),
    `#include "api/console_files.h"\n\n${declared}\nconst struct console_file console_files[] = {\n${rows}};\n` +
      `const size_t console_file_count = ${files.length};\n`
  )
  writeFileSync(join(out, 'console_files.S'), `${assembled}    .section .note.GNU-stack,"",%progbits\n`)
}

function writeDepfile(inputs) {
  const escaped = (path) => path.replaceAll(' ', '\\ ')
  const target = join(options.out, 'console_files.c')
  writeFileSync(options.depfile, `${escaped(target)}: ${inputs.map(escaped).join(' ')}\n`)
}

if (options.install) {
  console.log(packages())
} else {
  try {
    const { files, inputs } = await bundle(packages())
    writeSources(files)
    writeDepfile(inputs)
  } catch (error) {
    if (options.required) throw error
    // Faults in our own sources are told by esbuild, and are faults of the build.
    if (error.errors) process.exit(1)
    console.error(`no console: ${String(error.message).split('\n')[0]}`)
    copyFileSync(options.none, join(options.out, 'console_files.c'))
    writeFileSync(join(options.out, 'console_files.S'), '    .section .note.GNU-stack,"",%progbits\n')
    writeDepfile([join(here, 'package-lock.json')])
  }
}
