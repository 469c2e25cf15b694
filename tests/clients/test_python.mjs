// The Python client as its users have it: built, packed, installed without a network in an empty folder, and asked
// there, with asyncio and without.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, leaves, promise, root, run } from '../lib/world.mjs'
import { askReal, askReplay, prepare } from './exchanges.mjs'
import { installPython, needsPython, pip, python } from './install.mjs'
import { exampleIn, runExample } from './languages.mjs'

needsPython()
const source = join(root, 'tools', 'clients', 'python')
const wheelName = 'sagad_client-0.1.0-py3-none-any.whl'
const openapi = join(root, 'schema', 'openapi.json')
const blocks = (page) => [...readFileSync(page, 'utf8').matchAll(/```py\n([^]*?)```/g)].map(([, text]) => text)

// What mypy has to refuse, a line each.
const wrong = [
  'Sagad("http://a").start("stay")', // without an id
  'print(Sagad("http://a").wait("x")["stauts"])', // no such member
  'print(Sagad("http://a").call("t", run="r").result)', // of any outcome
  'Sagad("http://a").ask(routes.list_sagas(status=["runing"]))', // no such status
  'print(AsyncSagad("http://a").call("t", run="r").kind)' // not awaited
]

await run(new World(), async (world) => {
  let installed
  const folder = join(world.directory, 'program')
  mkdirSync(folder)
  await promise('the package is built, packed and installed in an empty folder, without a network', () => {
    installed = installPython(world, 'python')
    expect(!existsSync(join(source, 'sagad_client', 'schema.py')), 'what is made is not in the repository')
    const asked = ['-I', '-c', 'import sagad_client; print(sagad_client.__file__)']
    const where = execFileSync(installed, asked, { cwd: folder, encoding: 'utf8' })
    expect(where.startsWith(join(world.directory, 'environment')), 'it is the one that is installed', where)
  })
  if (!installed) return
  const python_ = (args, options = {}) => spawnSync(installed, args, { cwd: folder, encoding: 'utf8', ...options })

  await promise('two builds are the same bytes', () => {
    const build = [join(root, 'tools', 'clients', 'build.py'), 'python', '--out', join(world.directory, 'again')]
    const again = execFileSync(python, build, { encoding: 'utf8' }).trim()
    expect(readFileSync(again).equals(readFileSync(again.replace('/again/', '/wheel/'))), 'the wheels are the same')
  })

  await promise('pip and python3 -m build make the same wheel, also from an archive of the sources', () => {
    const wheel = readFileSync(join(world.directory, 'wheel', wheelName))
    const folder = join(world.directory, 'pep517')
    for (const name of ['python', join('participant', 'python')]) {
      const project = join(root, 'tools', 'clients', name)
      const before = execFileSync('git', ['status', '--porcelain', project], { cwd: root, encoding: 'utf8' })
      const code = `import backend; print(backend.build_sdist('.')); print(backend.build_wheel('.'))`
      mkdirSync(folder, { recursive: true })
      const env = { ...process.env, PYTHONPATH: project, PYTHONDONTWRITEBYTECODE: '1' }
      const made = execFileSync(python, ['-c', code], { cwd: folder, env, encoding: 'utf8' }).trim().split('\n')
      const after = execFileSync('git', ['status', '--porcelain', project], { cwd: root, encoding: 'utf8' })
      expectEqual(after, before, 'the sources stay as they are')
      pip(['wheel', '--no-deps', '-w', join(folder, 'of-archive'), join(folder, made[0])])
      pip(['wheel', '--no-deps', '-w', join(folder, 'of-folder'), project])
      const [first, ...others] = ['of-archive', 'of-folder', '.'].map((near) =>
        readFileSync(join(folder, near, made[1]))
      )
      for (const other of others) expect(first.equals(other), `${made[1]}: the same bytes`)
      expect(made[1] !== wheelName || first.equals(wheel), 'those of build.py')
    }
    if (spawnSync(python, ['-m', 'build', '--version'], { cwd: folder }).status !== 0)
      return console.log('  (python3 -m build was not tried: python3-build is not installed)')
    const built = join(folder, 'of-build')
    // An environment of its own would hold nothing, since the backend asks for nothing, and costs 9 s to make.
    const asked = ['-m', 'build', '--no-isolation', '--outdir', built, source]
    execFileSync(python, asked, { cwd: folder, stdio: 'ignore' })
    expect(readFileSync(join(built, wheelName)).equals(wheel), 'python3 -m build makes those bytes, too')
  })

  await promise('it has every route, parameter and member of the OpenAPI document, and an older one has not', () => {
    const check = join(root, 'tests', 'clients', 'check_python.py')
    expectEqual(python_([check, openapi]).stdout, '\n', 'what is missing')
    const newer = JSON.parse(readFileSync(openapi, 'utf8'))
    newer.components.schemas.Saga.properties.colour = { type: 'string' }
    newer.paths['/v1/colours'] = { get: { ...newer.paths['/v1/stats'].get, operationId: 'listColours' } }
    newer.paths['/v1/sagas'].get.parameters.push({ name: 'colour', in: 'query', schema: { type: 'string' } })
    writeFileSync(join(folder, 'newer.json'), JSON.stringify(newer))
    const { status, stdout } = python_([check, join(folder, 'newer.json')])
    const faults = ["Saga: ['colour']", "get /v1/sagas: ['colour']", 'get /v1/colours: there is no list_colours()']
    for (const fault of faults) expect(status === 1 && stdout.includes(fault), `${fault} is told`, stdout)
  })

  await promise('what the generator does not understand in the OpenAPI document is an error', () => {
    const strange = JSON.parse(readFileSync(openapi, 'utf8'))
    strange.components.schemas.Saga.properties.colour = { allOf: [{ type: 'string' }] }
    writeFileSync(join(folder, 'strange.json'), JSON.stringify(strange))
    const { status, stderr } = python_([join(source, 'generate.py'), 'strange.json', '.'])
    expect(status === 1 && stderr.includes("SagaColour: generate.py does not know ['allOf']"), 'it says so', stderr)
  })

  const examples = blocks(join(source, 'README.md'))
  writeFileSync(join(folder, 'example_2.py'), exampleIn('py'))
  for (const [n, text] of examples.entries()) writeFileSync(join(folder, `example_${n}.py`), text)

  const mypy = (...files) => {
    const asked = ['-m', 'mypy', '--strict', '--python-executable', installed, '--cache-dir', join(folder, 'cache')]
    return spawnSync(python, [...asked, ...files], { cwd: folder, encoding: 'utf8' })
  }
  const hasMypy = spawnSync(python, ['-c', 'import mypy'], { stdio: 'ignore' }).status === 0
  if (!hasMypy) console.log('# mypy is not installed (tools/test does it): the types are not looked at')
  else
    await promise('the package and the examples of its page are typed, and mistakes are seen', () => {
      const head = 'from sagad_client import AsyncSagad, Sagad, routes'
      writeFileSync(join(folder, 'wrong.py'), [head, ...wrong, ''].join('\n'))
      const package_ = join(world.directory, 'wheel', 'sagad_client')
      const { stdout, stderr } = mypy(package_, 'example_0.py', 'example_1.py', 'example_2.py', 'wrong.py')
      const errors = stdout.split('\n').filter((line) => line.includes(': error'))
      const lines = errors.map((line) => /^wrong\.py:(\d+): /.exec(line)?.[1] ?? line)
      expectEqual([[...new Set(lines)], stderr], [['2', '3', '4', '5', '6'], ''], stdout)
      expect(/ in 1 file \(checked 1[0-9] source files\)/.test(stdout), 'the others were looked at', stdout)
    })

  await prepare(world)
  await promise('the examples of its page run as they are printed, and again without a second effect', () => {
    const env = { ...process.env, SAGAD_URL: `http://127.0.0.1:${world.port}`, SAGAD_TOKEN: 'good' }
    const printed = ["completed\n{'amount': 4900}\n", "[{'to': 'ada'}, {'to': 'grace'}]\n{'sku': 'kettle'}\n"]
    for (let times = 0; times < 2; times++)
      for (const [n, wanted] of printed.entries()) {
        const { status, stdout, stderr } = python_([`example_${n}.py`], { env })
        expectEqual([status, stdout, stderr], [0, wanted, ''], 'what it prints')
      }
    const effects = world.ledger().filter((line) => line.effect === 1)
    expectEqual(
      effects.map(({ kind }) => kind),
      ['charge', 'reserve', 'charge', 'reserve'],
      'effects'
    )
  })

  const driver = [installed, join(root, 'tests', 'clients', 'drive_python.py')]
  await askReal(world, driver)
  await Promise.all([askReplay(driver), askReplay([...driver, 'asyncio'], 'with asyncio, ')])

  await promise('what was asked twice had one effect', () => {
    const charged = world.ledger().filter((line) => line.effect === 1 && line.kind === 'charge')
    const of = (customer) => charged.filter(({ body }) => body.customer === customer).length
    expectEqual([of('c-2'), of('c-3'), of('c-5'), of('c-10'), of('c-11')], [1, 1, 1, 1, 2], 'charges')
  })
  await promise('it is right about what the exchanges do not show', () => {
    const env = { ...process.env, SAGAD_URL: `http://127.0.0.1:${world.port}`, SAGAD_TOKEN: 'good' }
    const { status, stdout, stderr } = python_([join(root, 'tests', 'clients', 'check_python_client.py')], { env })
    expectEqual([status, stdout, stderr], [0, '', ''], 'what is wrong')
  })
  await runExample(world, folder, 'py', { command: [installed] })
  await runExample(world, folder, 'java')
  await leaves(world)
})
