// The other views are overview, approvals, definitions, tools and holds, calls.
import { expect, expectEqual, promise, quick } from '../lib/world.mjs'
import { Visitor, until } from './stage.mjs'

export async function views(world, browser, orders) {
  const visitor = await Visitor.arrives(browser, world, { as: 'operator' })
  const { page } = visitor
  const note = 'Why, for those who read the log later'
  const asks = async (button, why) => {
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(note).fill(why)
    await dialog.getByRole('button', { name: button, exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
  }

  await promise('the overview: what needs somebody, counts that lead on, figures over time', async () => {
    await visitor.opens('#/overview')
    await page.getByRole('link', { name: /^mail.send, reset: 1 case/ }).waitFor()
    // sagad writes its series once a minute: the short form does not wait for that.
    await page.getByRole('img', { name: quick ? /^Needed a person: / : /^Needed a person: [1-9]/ }).waitFor()
    await page.getByText('this needs an admin of the namespace').waitFor()
    await visitor.checksAccess('overview')
    await page.getByRole('link', { name: 'A week' }).click()
    await page.getByRole('img', { name: /^Sagas started: / }).waitFor()
    expect(/range=week/.test(page.url()), 'the range is in the address', page.url())
    await page.getByRole('link', { name: /completed/ }).click()
    expect(/status=completed/.test(page.url()), 'a count leads to its list', page.url())
  })

  await promise('an approval: decided for what is shown, with a name', async () => {
    const ids = []
    for (const cents of [500, 700]) ids.push(await world.start('spending', { cents }, { id: `roof-${cents}` }))
    for (const id of ids) await world.until(id, ['waiting'])
    await visitor.opens('#/approvals')
    const card = (name) => page.getByRole('listitem').filter({ has: page.getByRole('link', { name }) })
    await card('roof-500').getByText('"cents": 500').waitFor()
    await visitor.checksAccess('approvals')
    await card('roof-500').getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('dialog').getByText('"cents": 500').waitFor()
    await asks('Approve', 'the roof leaks')
    await world.until(ids[0], ['completed'])
    await card('roof-700').getByRole('button', { name: 'Refuse' }).click()
    await asks('Refuse', 'too dear')
    await world.until(ids[1], ['compensated'])
    await page.getByRole('link', { name: 'All', exact: true }).click()
    await page.getByText('operator: too dear').waitFor()
    const agent = await Visitor.arrives(browser, world, { as: 'agent' })
    const waits = await world.start('spending', { cents: 900 }, { id: 'roof-900' })
    await world.until(waits, ['waiting'])
    await agent.opens('#/approvals')
    await agent.sees('needs the role operator; you are signed in as agent')
    await agent.leaves()
  })

  await promise('a definition: its graph, a form that starts one, what changed', async () => {
    await visitor.opens('#/definitions')
    await page.getByRole('link', { name: 'trip', exact: true }).click()
    await page.getByRole('img', { name: 'seat; pay after seat; mail after pay' }).waitFor()
    const proved = JSON.parse(world.sagactl(['prove', '--registered', 'trip', '-o', 'json']).stdout).items[0]
    const ends = page.getByRole('region', { name: 'How it ends' }).locator('tbody tr')
    await page.getByText(`${proved.covered.points} failure points, one at a time`).waitFor()
    expectEqual(await ends.count(), proved.ends.length, 'a row for each failure point')
    await page.getByLabel('Show', { exact: true }).selectOption('person')
    const asking = proved.ends.filter(({ end }) => end === 'escalated')
    await until(async () => (await ends.count()) === asking.length, 'those that need a person')
    expect(asking.length > 0 && asking.length < proved.ends.length, 'some of them need one', asking.length)
    expect((await ends.first().innerText()).includes(asking[0].what), 'what happens', await ends.first().innerText())
    expect(/ends=person/.test(page.url()), 'in the address', page.url())
    await page.getByLabel('Show', { exact: true }).selectOption('')
    await visitor.checksAccess('definition')
    await page.getByLabel('trip the name of the trip, required').fill('by form')
    await page.getByLabel('seats').fill('0')
    await page.getByLabel('class').selectOption('second')
    await page.getByLabel('window').selectOption('true')
    await page.getByLabel('Business id').fill('form-1')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('alert').getByText('/input/seats').waitFor()
    await page.getByLabel('seats').fill('2')
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('heading', { name: 'form-1' }).waitFor()
    const saga = (await world.api('GET', '/v1/sagas/by-business-id/trip/form-1')).json
    expectEqual(saga.input, { trip: 'by form', seats: 2, class: 'second', window: true }, 'the input')
    await world.until(saga.id, ['completed'])
    await page.getByRole('link', { name: 'Graph' }).click()
    await page.getByRole('img', { name: /pay after seat: completed/ }).waitFor()
    const boxes = (of) => page.locator(of).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()))
    const [nodes, shapes] = [await boxes('.node > rect'), await boxes('.node > .shape')]
    const isWithin = (a, b) => a.left > b.left && a.right < b.right && a.top > b.top && a.bottom < b.bottom
    expectEqual(shapes.length, nodes.length, 'each node has a shape')
    expect(
      shapes.every((shape, i) => isWithin(shape, nodes[i])),
      'within it',
      JSON.stringify(shapes)
    )
    await visitor.checksAccess('saga-graph')
    const changed = { name: 'contract', steps: [{ id: 'signed', signal: { name: 'countersigned' } }] }
    await world.define({ sagas: [changed] })
    await visitor.opens('#/definitions/contract?before=1')
    const what = page.getByLabel('What changed')
    await what.getByText('+ "name": "countersigned"').waitFor()
    await what.getByText('− "name": "signed"').waitFor()
  })

  await promise('a tool: how it does, held and released, with notes', async () => {
    await visitor.opens('#/tools')
    await page.getByRole('link', { name: 'mail.send', exact: true }).waitFor()
    await visitor.checksAccess('tools')
    await page.getByRole('link', { name: 'mail.send', exact: true }).click()
    await page.getByText('Its definition has no breaker.').waitFor()
    await page.getByText('nobody: it is terminal').waitFor()
    await page.getByText('Called by order').waitFor()
    await page.getByRole('button', { name: 'Hold this tool' }).click()
    await asks('Hold it', 'the mail server is moved')
    await page.getByText('the mail server is moved').waitFor()
    await visitor.checksAccess('tool')
    const held = (await world.api('GET', '/v1/holds')).json.items
    expectEqual([held.length, held[0].tool, held[0].actor], [1, 'mail.send', 'operator'], 'the hold')
    await page.getByRole('link', { name: 'release it' }).click()
    await page.getByRole('button', { name: 'Release' }).click()
    await asks('Release', 'it is there again')
    await page.getByText('operator: it is there again').waitFor()
    await visitor.checksAccess('holds')
    expectEqual((await world.api('GET', '/v1/holds')).json.items, [], 'holds in force')
  })

  await promise('the calls of a run, one of them with its key, and one more signed off', async () => {
    await world.api('POST', '/v1/operations', {
      run: 'chat-17',
      tool: 'post.send',
      args: { to: 'ada', subject: 'hello' }
    })
    await world.api('POST', '/v1/operations', {
      run: 'chat-17',
      tool: 'post.send',
      args: { to: 'ada', subject: 'hello' }
    })
    await visitor.opens('#/calls?run=chat-17')
    await until(
      async () => (await page.locator('tr[data-row]').count()) === 1,
      'one call, although it was asked for twice'
    )
    await page.getByRole('link', { name: 'what happened in this run' }).waitFor()
    await page.getByText('1 repeat: 1 got the stored answer').waitFor()
    await visitor.checksAccess('calls')
    await page.getByRole('link', { name: 'post.send' }).click()
    await page.getByRole('button', { name: 'Sign one more execution off' }).click()
    await asks('Sign it off', 'the first was lost in the post')
    const { key } = (await world.api('GET', '/v1/operations?run=chat-17')).json.items[0]
    await visitor.sees(key)
    await page.getByText(/got the stored answer/).waitFor()
    await visitor.checksAccess('call')
  })

  await promise('a case is looked at, and commented', async () => {
    await visitor.opens(`#/case/${(await world.escalationOf(orders.stuck)).n}`)
    await page.getByRole('button', { name: 'I look at it' }).click()
    await asks('I look at it', 'asking the mail people')
    await page.getByText('asking the mail people').waitFor()
    await page.getByRole('button', { name: 'Comment' }).click()
    await asks('Comment', 'they call back at noon')
    await page.getByText('they call back at noon').waitFor()
    await visitor.checksAccessAgain('case-remarks')
  })
  await visitor.leaves()
}
