// The TypeScript client as its users have it: built, packed, installed without a network in an empty folder, and asked
// there. With --write the exchanges that all clients share are recorded anew.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, leaves, promise, root, run } from '../lib/world.mjs'
import { askReal, askReplay, prepare } from './exchanges.mjs'
import { install, needs, packages } from './install.mjs'
import { exampleIn, runExample } from './languages.mjs'

needs('openapi-typescript')
const source = join(root, 'tools', 'clients', 'typescript')

await run(new World(), async (world) => {
  let folder
  await promise('the package is built, packed and installed in an empty folder, without a network', () => {
    folder = install(world, 'typescript')
    expect(existsSync(join(folder, 'node_modules', 'sagad-client', 'dist', 'schema.d.ts')), 'its types are there')
    expect(!existsSync(join(source, 'src', 'schema.d.ts')), 'what is made is not in the repository')
  })
  if (!folder) return
  const driver = [process.execPath, join(root, 'tests', 'clients', 'drive_typescript.mjs'), folder]

  await prepare(world)
  const example = readFileSync(join(source, 'README.md'), 'utf8').match(/```ts\n([^]*?)```/)[1]

  await promise('the examples have the types that they say', () => {
    writeFileSync(join(folder, 'example.ts'), example)
    writeFileSync(join(folder, 'stay.ts'), exampleIn('ts'))
    const tsc = [join(packages, 'typescript', 'bin', 'tsc'), '--noEmit', '--strict', '--skipLibCheck']
    const types = ['--types', 'node', '--typeRoots', join(packages, '@types'), '--target', 'es2022']
    const options = ['--module', 'nodenext', '--lib', 'es2023', 'example.ts', 'stay.ts']
    const { status, stdout } = spawnSync(process.execPath, [...tsc, ...types, ...options], {
      cwd: folder,
      encoding: 'utf8'
    })
    expectEqual([status, stdout], [0, ''], 'the compiler')
  })

  await promise('the example of its page runs as it is printed, and again without a second effect', () => {
    writeFileSync(join(folder, 'example.mjs'), example)
    const env = { ...process.env, SAGAD_URL: `http://127.0.0.1:${world.port}`, SAGAD_TOKEN: 'good' }
    for (let times = 0; times < 2; times++) {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['example.mjs'], {
        cwd: folder,
        env,
        encoding: 'utf8'
      })
      expectEqual([status, stdout, stderr], [0, 'completed\n{ amount: 4900 }\n', ''], 'what it prints')
    }
    const effects = world.ledger().filter((line) => line.effect === 1)
    expectEqual(
      effects.map(({ kind }) => kind),
      ['charge', 'reserve', 'charge'],
      'effects'
    )
  })

  await askReal(world, driver)
  await askReplay(driver)

  await promise('what was asked twice had one effect', () => {
    const charged = world.ledger().filter((line) => line.effect === 1 && line.kind === 'charge')
    const of = (customer) => charged.filter(({ body }) => body.customer === customer).length
    expectEqual([of('c-2'), of('c-3'), of('c-5'), of('c-10'), of('c-11')], [1, 1, 1, 1, 2], 'charges')
  })
  await runExample(world, folder, 'ts')
  await runExample(world, folder, 'sh', { times: 2 })
  await leaves(world)
})
