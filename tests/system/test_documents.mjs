// README.md and the pages are true: every block is run or registered as printed, every link leads somewhere, and every
// table about the programs (settings, commands, bounds, problem codes, exit codes) is checked against them.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { anchorsOf, blocksOf, commandsOf, pageText, pages, wantedExit } from '../lib/documents.mjs'
import { World, expect, expectEqual, promise, root, run } from '../lib/world.mjs'

const runs = new Set(['sh', 'js', 'sql', 'yaml'])
const shown = new Set(['text', 'mermaid']) // blocks for people's eyes

const isScenarios = (block) => block.text.includes('"scenarios": [')

class Documents extends World {
  // Makes a folder as the reader has it: tools/dev has built the programs, made a token, and serves on its own ports.
  folder() {
    const folder = mkdtempSync(join(this.directory, 'clone-'))
    for (const path of ['build/dev', 'build/release/tools', 'schema/examples'])
      mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(join(folder, 'build/dev/token'), 'nobody asks for it here\n', { mode: 0o600 })
    symlinkSync(dirname(this.sagactlPath), join(folder, 'build/release/tools/sagactl'))
    symlinkSync(this.sagadPath, join(folder, 'build/release/sagad'))
    const examples = join(folder, 'schema/examples')
    cpSync(join(root, 'schema/examples'), examples, { recursive: true })
    for (const name of readdirSync(examples).filter((one) => one.endsWith('.json')))
      writeFileSync(join(examples, name), this.placed(readFileSync(join(examples, name), 'utf8')))
    writeFileSync(join(folder, '.curlrc'), 'fail-with-body\n')
    return folder
  }

  placed(text) {
    return text
      .replaceAll('127.0.0.1:8077', `127.0.0.1:${this.port}`)
      .replaceAll('127.0.0.1:9001', `127.0.0.1:${this.shopPort}`)
  }

  // A refused request fails its command, although the page says `curl -s`.
  environment(folder) {
    return {
      ...process.env,
      CURL_HOME: folder,
      PATH: `${dirname(this.sagadPath)}:${dirname(this.sagactlPath)}:${this.binaries}:${process.env.PATH}`,
      NO_COLOR: '1',
      ASAN_OPTIONS: 'detect_leaks=0',
      SAGACTL_SERVER: `http://127.0.0.1:${this.port}`,
      PGHOST: this.directory,
      PGPORT: '5432',
      PGUSER: 'postgres',
      PGDATABASE: 'postgres'
    }
  }

  // Runs one script of all blocks of a page, so that a block has the exports of the block before. After each command
  // the script prints the command's number and exit code. A command may end the script only on purpose.
  runPage(page) {
    const folder = this.folder(),
      script = [],
      wanted = []
    const add = (command, code, line) => {
      script.push(command, `printf '\\n@@ %s %s\\n' ${wanted.length} $?`)
      wanted.push({ command, code, line })
    }
    for (const block of blocksOf(page)) {
      if (block.excuse) continue
      if (block.kind === 'sh')
        for (const command of commandsOf(this.placed(block.text))) add(command, wantedExit(command), block.line)
      if (block.kind === 'js') {
        writeFileSync(join(folder, `block-${block.line}.mjs`), this.placed(block.text))
        add(`node block-${block.line}.mjs`, 0, block.line)
      }
      if (block.kind === 'json' && isScenarios(block)) {
        writeFileSync(join(folder, 'schema/examples', `block-${block.line}.json`), block.text)
        add(`sagactl test schema/examples/block-${block.line}.json`, 0, block.line)
      }
      if (block.kind === 'yaml') {
        writeFileSync(join(folder, `block-${block.line}.yaml`), block.text)
        add(`sagactl check block-${block.line}.yaml`, 0, block.line)
      }
      if (block.kind === 'sql') {
        const [, database, user] = /^-- in the database (\w+), as (\w+)/.exec(block.text) ?? [, 'postgres', 'postgres']
        writeFileSync(join(folder, `block-${block.line}.sql`), block.text)
        add(`psql -X -q -v ON_ERROR_STOP=1 -U ${user} -d ${database} -f block-${block.line}.sql`, 0, block.line)
      }
    }
    if (wanted.length === 0) return 0
    const ran = spawnSync('bash', ['-c', script.join('\n')], {
      encoding: 'utf8',
      cwd: folder,
      timeout: 400000,
      env: this.environment(folder)
    })
    const codes = new Map(
      [...ran.stdout.matchAll(/^@@ (\d+) (\d+)$/gm)].map((match) => [Number(match[1]), Number(match[2])])
    )
    for (const [i, { command, code, line }] of wanted.entries()) {
      const answer = ran.stdout
        .split(`@@ ${i - 1} `)
        .at(-1)
        .split(`@@ ${i} `)[0]
      const said = answer.slice(-900)
      // A call of MCP that is refused is a 200, too.
      const refused = command.includes('/mcp') && /"isError":\s*true|"error":\s*\{/.test(answer)
      expect(!refused, `${page}:${line}: a call of MCP that is not refused`, said)
      expect(
        codes.get(i) === code,
        `${page}:${line}: ${command}: exit code ${code}`,
        `${codes.get(i)} ${said} ${ran.stderr.slice(-900)}`
      )
    }
    return wanted.length
  }
}

// Returns the document that registers what a block of JSON shows.
function documentOf(value) {
  if (value.tools || value.sagas) return value
  if (value.steps) return { sagas: [value] }
  if (value.effect) return { tools: [value] }
  throw new Error('a block of JSON is a document, a tool or a saga, or says why it is not registered')
}

const rows = (page, heading) => {
  const text = pageText(page)
  expect(text.includes(`\n## ${heading}\n`), `${page} has the part ${heading}`)
  return text
    .split(`\n## ${heading}\n`)[1]
    .split('\n## ')[0]
    .split('\n')
    .filter((line) => /^\| /.test(line))
    .slice(1)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim())
    )
    .filter((cells) => !/^-+$/.test(cells[0]))
}
const bare = (cell) => cell.replaceAll('`', '')

await run(new Documents(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  for (const name of readdirSync(join(root, 'schema/examples')).filter((one) => one.endsWith('.json')))
    await world.define(world.example(name)) // as tools/dev

  await promise('every block is run, registered, or says why not', () => {
    for (const page of pages) {
      for (const { kind, line, excuse } of blocksOf(page)) {
        expect(
          excuse || runs.has(kind) || kind === 'json' || shown.has(kind),
          `${page}:${line}: what is to be done with "${kind}"`
        )
      }
    }
  })
  for (const page of pages) {
    await promise(
      `${page}: its definitions are accepted, its commands end as printed`,
      () => {
        const documents = blocksOf(page)
          .filter((block) => block.kind === 'json' && !block.excuse && !isScenarios(block))
          .map((block) => ({ ...documentOf(JSON.parse(world.placed(block.text))), line: block.line }))
        const all = {
          tools: documents.flatMap((one) => one.tools ?? []),
          sagas: documents.flatMap((one) => one.sagas ?? [])
        }
        if (documents.length > 0) {
          const path = join(world.directory, 'page.json')
          writeFileSync(path, JSON.stringify(all))
          const applied = world.sagactl(['apply', path])
          expect(applied.status === 0, `sagactl apply of what ${page} shows`, applied.stdout + applied.stderr)
        }
        world.runPage(page)
      },
      400
    )
  }

  await promise('every link leads to a file, and to a heading of it', () => {
    for (const page of pages) {
      for (const [, target] of pageText(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue
        const [path, anchor] = target.split('#')
        const to = path === '' ? page : join(dirname(page), path)
        expect(existsSync(join(root, to)), `${page}: ${target} is there`)
        expect(anchor === undefined || anchorsOf(to).has(anchor), `${page}: ${target} is a heading`)
      }
    }
  })
  await promise('README.md has at most 150 lines, and no line of a page is wider than 120 columns', () => {
    expect(pageText('README.md').trimEnd().split('\n').length <= 150, 'README.md is short')
    for (const page of pages) {
      for (const [i, line] of pageText(page).split('\n').entries())
        expect([...line].length <= 120, `${page}:${i + 1} is at most 120 columns wide`)
    }
  })

  await promise('language.md prints what language.json has', () => {
    const { tools, sagas } = JSON.parse(readFileSync(join(root, 'schema/examples/language.json'), 'utf8'))
    const blocks = blocksOf('schema/language.md')
      .filter((block) => block.kind === 'json')
      .map((block) => JSON.parse(block.text))
    expectEqual(blocks, [{ tools }, ...sagas], 'the documents on the page')
  })
  await promise('beside-others.md counts the lines that are there', () => {
    const count = (text) => text.split('\n').filter((line) => line.trim() !== '').length
    const file = (name) => count(readFileSync(join(root, 'schema/examples', name), 'utf8'))
    const [program] = blocksOf('schema/beside-others.md').filter(({ kind }) => kind === 'js')
    const lines = [file('booking.json'), count(program.text), file('scenarios/booking.json')]
    expect(pageText('schema/beside-others.md').includes(`| sagad | ${lines.join(' + ')} |`), 'the row', lines)
  })

  await promise('command-line.md has every setting of sagad with its default, and every command of sagactl', () => {
    const help = world.sagadOnce(['--help']).stdout
    const settings = [
      ...help.matchAll(/^ {2}--([a-z-]+)(?: (?:TEXT|NUMBER|DURATION))? .*?(?:\(default ([^)]+)\))?$/gm)
    ].map((match) => [`--${match[1]}`, match[2] ?? ''])
    expect(settings.length > 30, 'the settings of sagad --help', help)
    expectEqual(
      rows('schema/command-line.md', 'Settings of sagad')
        .map((row) => [bare(row[0]), bare(row[1])])
        .sort(),
      settings.sort(),
      'the settings'
    )
    const commands = [
      ...world
        .sagactl(['--help'])
        .stdout.split('Commands\n')[1]
        .split('\n\n')[0]
        .matchAll(/^ {2}([a-z]+) /gm)
    ].map((match) => match[1])
    const told = new Set(
      rows('schema/command-line.md', 'Commands of sagactl').flatMap((row) =>
        [...row[0].matchAll(/`(?:sagactl )?([a-z]+)/g)].map((match) => match[1])
      )
    )
    expectEqual([...told].sort(), commands.sort(), 'the commands')
  })
  await promise('limits.md has the default and the bounds of each setting that is a bound', () => {
    const usual = JSON.parse(world.sagadOnce(['--print-config']).stdout)
    const unit = { '': 1, ms: 1, s: 1000, m: 60000, h: 3600000, KiB: 1024, MiB: 1 << 20 }
    const count = (text) => {
      const [, n, of] = /^([\d,]+) ?(\w*)$/.exec(text)
      return Number(n.replaceAll(',', '')) * unit[of]
    }
    for (const [name, by, bounds, setting] of rows('engine/limits.md', 'Bounds that a setting moves').map((row) =>
      row.map(bare)
    )) {
      const [least, most] = bounds.split(' to ').map(count)
      const accepts = (value) => world.sagadOnce([setting, value, '--check-config']).status === 0
      const asValue = (value) => (/\d ?(ms|s|m|h)\b/.test(bounds) ? `${value}ms` : String(value))
      expect(accepts(asValue(least)) && accepts(asValue(most)), `${name}: ${setting} from ${least} to ${most}`)
      expect(!accepts(asValue(least - 1)) && !accepts(asValue(most + 1)), `${name}: nothing beyond ${bounds}`)
      expectEqual(count(by), count(usual[setting.slice(2)].value), `${name}: the default of ${setting}`)
    }
  })
  await promise('contributing.md names tests and suites that exist', () => {
    const listed = spawnSync('meson', ['introspect', '--tests', dirname(world.sagadPath)], { encoding: 'utf8' })
    const tests = JSON.parse(listed.stdout)
    const known = new Set(['--list', '--test', '--long', '--seed', 'NAME', 'NAME...', 'SUITE', 'N'])
    for (const test of tests) {
      known.add(test.name)
      for (const suite of test.suite) known.add(suite.replace(/^.*:/, ''))
    }
    const commands = [...pageText('engine/contributing.md').matchAll(/`tools\/test ([^`]*)`/g)]
    expect(commands.length >= 10, 'the page says what to run', commands.length)
    for (const [command, words] of commands)
      for (const word of words.split(' ').filter(Boolean))
        expect(known.has(word), `${command}: ${word} is a test or a suite`)
  })
  await promise('api.md and openapi.json have every problem code, with its status', () => {
    const codes = [
      ...readFileSync(join(root, 'engine/base/errors.h'), 'utf8').matchAll(
        /X\(ERR_\w+, *"([a-z-]+)", *"[^"]*", *(\d+), *\d+, *(true|false)\)/g
      )
    ]
      .map((match) => [match[1], match[2], match[3] === 'true' ? 'yes' : 'no'])
      .filter(([name]) => name !== 'ok')
    expectEqual(
      rows('schema/api.md', 'Problem codes')
        .map((row) => row.slice(0, 3).map(bare))
        .sort(),
      codes.sort(),
      'the codes of the page'
    )
    const { Problem } = JSON.parse(readFileSync(join(root, 'schema/openapi.json'), 'utf8')).components.schemas
    expectEqual(
      [...Problem.properties.type.enum].sort(),
      codes.map(([name]) => `urn:sagad:problem:${name}`).sort(),
      'the codes of openapi.json'
    )
  })
})
