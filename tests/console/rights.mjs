// What each role sees of each verb: what it may not do is shown, and says which role may. That the server decides is
// what tests/unit/api/test_api_rights.c shows.
import { expect, expectEqual, promise } from '../lib/world.mjs'
import { Visitor } from './stage.mjs'

const roles = ['reader', 'agent', 'operator', 'admin']

export async function rights(world, browser, orders) {
  const waits = await world.start('spending', { cents: 40 }, { id: 'rights' })
  await world.until(waits, ['waiting'])
  const asked = { run: 'chat-rights', tool: 'post.send', args: { to: 'ada', subject: 'rights' } }
  const { key } = (await world.api('POST', '/v1/operations', asked)).json
  const { n } = await world.escalationOf(orders.stuck)
  // The least role of each verb, by view.
  const views = {
    [`#/saga/${orders.stuck}`]: { Pause: 'operator', Abort: 'agent', 'Ask a person': 'operator', Signal: 'agent' },
    [`#/case/${n}`]: { 'It did not happen': 'operator', 'I look at it': 'operator', Comment: 'operator' },
    '#/approvals': { Approve: 'operator', Refuse: 'operator' },
    '#/tools?name=mail.send': { 'Hold this tool': 'operator' },
    [`#/calls/${key}`]: { 'Sign one more execution off': 'operator' },
    '#/definitions/contract': { Start: 'agent' },
    '#/bulk/new?of=cases&tool=mail.send': { 'Show what would happen': 'operator' },
    '#/sagas?status=escalated': { 'Act on all that match': 'operator' }
  }
  for (const role of roles)
    await promise(`rights: what a person with the role ${role} may do, and why not the rest`, async () => {
      const visitor = await Visitor.arrives(browser, world, { as: role })
      for (const [view, verbs] of Object.entries(views)) {
        await visitor.opens(view)
        for (const [verb, least] of Object.entries(verbs)) {
          const may = roles.indexOf(role) >= roles.indexOf(least)
          const button = visitor.page
            .getByRole('button', { name: verb, exact: true })
            .or(visitor.page.getByRole('link', { name: verb, exact: true }))
            .first()
          await button.waitFor()
          const why = await button.evaluate(
            (one) => document.getElementById(one.getAttribute('aria-describedby'))?.innerText
          )
          expectEqual(await button.getAttribute('aria-disabled'), may ? null : 'true', `${verb} as ${role}`)
          expect(may || why?.includes(`needs the role ${least}`), `why ${role} may not ${verb}`, why)
        }
      }
      await visitor.leaves()
    })
}
