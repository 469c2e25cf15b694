// The table of an evaluation over the Model Context Protocol: for each class of tools and each kind of host, how many
// effects a wish came to, and which share needed a person.
export const classes = { keys: 'keyed', 'ignores-keys': 'checked', blind: 'once' }

// One row for each kind of host.
export function rowsOf(trial, books, shop) {
  const kinds = [...new Set(trial.journeys.map((journey) => journey.wish.host))]
  return kinds.map((host) => {
    const journeys = trial.journeys.filter((journey) => journey.wish.host === host)
    const { runs, completed, compensated, failed, person, left, wrong } = trial.counts(books, journeys)
    return {
      class: classes[shop],
      host,
      runs,
      completed,
      compensated,
      failed,
      ...effects(journeys, books),
      left,
      person,
      wrong
    }
  })
}

// The effects of the wishes that ended completed, beside those that they wanted: one of each kind, and one more for
// each execution that a person signed and the agent used.
function effects(journeys, books) {
  let wanted = 0
  let made = 0
  for (const { wish, final, stranded } of journeys) {
    const tally = Object.values(books.tally(wish.id)).reduce((sum, one) => sum + one.done - one.undone, 0)
    if (stranded) continue
    if (wish.kind === 'buy' && final.status !== 'completed') continue
    wanted +=
      wish.kind === 'buy' ? wish.kinds.length : final.operations.filter((one) => one.state === 'completed').length
    made += tally
  }
  return { wanted, made }
}

export function printByHost(rows) {
  const cells = rows.map((row) => [
    row.class,
    row.host,
    row.runs,
    row.completed,
    (row.made / row.wanted).toFixed(4),
    row.compensated + row.failed,
    row.left,
    `${((100 * row.person) / row.runs).toFixed(2)} %`,
    row.wrong
  ])
  const head = ['class', 'host', 'wishes', 'completed', 'effects a wish', 'undone', 'left', 'needed a person', 'wrong']
  for (const row of [head, head.map(() => '---'), ...cells]) console.log(`| ${row.join(' | ')} |`)
}
