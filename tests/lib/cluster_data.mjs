// Data folders of PostgreSQL for tests, as copies of two templates: what initdb makes, and the same with the schema of
// sagad. Copying is ten times as quick as initdb, and migrating costs a test as much as most of its questions. The
// first test that needs a template makes it, for all later ones.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const migrations = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'schema', 'migrations')

// What is told apart by `key` has a template of its own. tests/lib/cluster.c shares the one without a key.
function templatePath(world, key = '') {
  const initdb = statSync(join(world.binaries, 'initdb'))
  const made = `${initdb.ino.toString(16)}-${Math.floor(initdb.mtimeMs / 1000)}-${uidOf(world)}`
  return join(tmpdir(), `sagad-test-template-small-${made}${key}`)
}

const uidOf = (world) => world.user.uid ?? process.getuid()

function copied(world, from, to) {
  const options = { ...world.user, cwd: world.directory, encoding: 'utf8' }
  const done = spawnSync('cp', ['-a', '--reflink=auto', from, to], options).status === 0
  if (!done) rmSync(to, { recursive: true, force: true })
  return done
}

const copiedFrom = (world, template, data) =>
  existsSync(template) && statSync(template).uid === uidOf(world) && copied(world, template, data)

function keep(world, data, template) {
  const fresh = `${template}.${process.pid}`
  if (!copied(world, data, fresh)) return
  try {
    renameSync(fresh, template)
  } catch {
    // Several tests came here at once, and another one was faster.
    rmSync(fresh, { recursive: true, force: true })
  }
}

function makeEmpty(world, data) {
  const template = templatePath(world)
  if (copiedFrom(world, template, data)) return
  const made = spawnSync(
    join(world.binaries, 'initdb'),
    // Small segments of the log make the copies half as large.
    ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8', '-N', '--wal-segsize=1'],
    { ...world.user, cwd: world.directory, encoding: 'utf8' }
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}${made.error ?? ''}`)
  keep(world, data, template)
}

// The migrations in the tree are told by their content. Undefined when sagad is older than one of them: it may bring
// others.
function migrationsKey(world) {
  const paths = readdirSync(migrations).map((name) => join(migrations, name))
  if (paths.some((path) => statSync(path).mtimeMs > statSync(world.sagadPath).mtimeMs)) return undefined
  const hash = createHash('sha256')
  for (const path of paths.sort()) hash.update(readFileSync(path))
  return `-${hash.digest('hex').slice(0, 16)}`
}

// Makes the data folder of `world`. With world.isEmpty no schema is in it. `migrateOnce` migrates a cluster on that
// folder, and stops it.
export async function makeData(world, data, migrateOnce) {
  const key = world.isEmpty ? undefined : migrationsKey(world)
  if (key === undefined) return makeEmpty(world, data)
  const template = templatePath(world, key)
  if (copiedFrom(world, template, data)) return
  makeEmpty(world, data)
  await migrateOnce()
  keep(world, data, template)
}
