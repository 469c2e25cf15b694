// Frameworks for agents with sagad as their server: the examples of schema/frameworks.md are run as printed, with
// packages of npm and the real shop. A call that is made again by another client of the same conversation is done
// once. Packages that tools/test does not install are tried where SAGAD_FRAMEWORKS names their node_modules.
import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { blocksOf } from '../lib/documents.mjs'
import { World, expect, expectEqual, leaves, promise, run } from '../lib/world.mjs'

const folders = [process.env.NODE_MODULES, process.env.SAGAD_FRAMEWORKS].filter(Boolean)
const folderOf = (name) => folders.find((folder) => existsSync(join(folder, name)))
const always = '@ai-sdk/mcp'
if (!folderOf(always)) {
  console.log(`skipped: ${always} is not installed (tools/test does it)`)
  process.exit(77)
}

// What an agent does with what an example has made: call the tool.
const frameworks = {
  [always]: `({ call: (args) => tools.payments_charge.execute(args, { toolCallId: 'c', messages: [] }),
    close: () => sagad.close() })`,
  '@openai/agents': `({ call: (args) => agent.mcpServers[0].callTool('payments_charge', args),
    close: () => sagad.close() })`,
  '@langchain/mcp-adapters': `({ call: (args) => tools.find((one) => one.name === 'payments_charge').invoke(args),
    close: () => client.close() })`
}
const blocks = blocksOf('schema/frameworks.md')

await run(new World(), async (world) => {
  await Promise.all([world.startPostgres(), world.startShop()])
  await world.startSagad()
  await world.define({
    tools: [
      {
        name: 'payments.charge',
        description: 'Charges a customer.',
        http: { url: `http://127.0.0.1:${world.shopPort}/charges` },
        input: {
          type: 'object',
          properties: { amount: { type: 'integer' }, customer: { type: 'string' } },
          required: ['amount', 'customer']
        },
        result: { id: '${ .response.body.id }' },
        effect: 'keyed',
        key: { window: '1h' },
        terminal: true
      }
    ]
  })
  process.env.TOKEN = 'none is asked for'

  for (const [name, made] of Object.entries(frameworks)) {
    const folder = folderOf(name)
    if (!folder) {
      console.log(`# not installed: ${name}`)
      continue
    }
    await promise(`${name}: a call that is made again is done once`, async () => {
      const block = blocks.find((one) => one.kind === 'js' && one.text.includes(`'${name}'`))
      expect(block?.excuse.startsWith('test_frameworks.mjs runs it'), 'the page has an example')
      const entry = pathToFileURL(createRequire(join(folder, 'x.mjs')).resolve(name)).href
      const text = block.text.replace(`'${name}'`, `'${entry}'`).replaceAll(':8077', `:${world.port}`)
      const [, imports, rest] = /^((?:import .*\n)+)([^]*)$/.exec(text)
      const file = join(world.directory, `${name.replace(/\W/g, '-')}.mjs`)
      writeFileSync(file, `${imports}export const begin = async (conversation) => {\n${rest}return ${made}\n}\n`)
      const { begin } = await import(pathToFileURL(file).href)
      const args = { amount: 1000, customer: name }
      const answers = []
      for (const conversation of ['one', 'one', 'another']) {
        const agent = await begin(`${name} ${conversation}`)
        answers.push(JSON.stringify(await agent.call(args)))
        await agent.close()
      }
      const charges = world.ledger().filter((line) => line.kind === 'charge' && line.body?.customer === name)
      expectEqual(charges.filter((line) => line.effect === 1).length, 2, `a charge for each conversation: ${answers}`)
      const ids = answers.map((answer) => /ch[\w-]*\d+/.exec(answer)?.[0])
      expectEqual(
        [ids[0] === ids[1], ids[0] === ids[2]],
        [true, false],
        `each call gets the charge of its conversation: ${answers}`
      )
    })
  }
  await leaves(world)
})
