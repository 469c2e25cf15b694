// Prints the Grafana dashboard of sagad from the panels below: `node tools/alerts/dashboard.mjs > FILE`. The test
// `watching` holds sagad.dashboard.json against what this prints, and each name in it against a running sagad.
const byTool = '{namespace=~"$namespace",tool=~"$tool"}'
const byDefinition = '{namespace=~"$namespace"}'
const perSecond = (metric, labels = '') => `rate(${metric}${labels}[$__rate_interval])`
const ofTools = (metric, by = 'tool') => `sum by (${by}) (${perSecond(metric, byTool)})`
const ofDefinitions = (metric) => `sum by (saga) (${perSecond(metric, byDefinition)})`
const all = (metric) => `sum(${perSecond(metric)})`
const quantile = (q, metric) => `histogram_quantile(${q}, sum by (le) (${perSecond(`${metric}_bucket`)}))`
const quantiles = (metric) => [
  ['median', quantile(0.5, metric)],
  ['99th percentile', quantile(0.99, metric)]
]

// A panel: its title, what it means and what to do, the unit of Grafana, and pairs of a legend and a query.
const rows = [
  [
    'What waits for a person, and what is in doubt',
    [
      'Cases open',
      'Questions that wait for a person. `sagactl cases` lists them.',
      'short',
      [['open', 'sum(sagad_escalations_open)']]
    ],
    [
      'Cases opened a second, by definition',
      'A burst is an outage of a tool. Group them before you answer one: `sagactl cases --group-by tool,error`.',
      'ops',
      [['{{saga}}', ofDefinitions('sagad_definition_cases_opened_total')]]
    ],
    [
      'Operations of which nobody knows whether they happened',
      'The oldest matters more than how many: `sagactl operations --state unknown`.',
      'short',
      [['{{tool}}', `sum by (tool) (sagad_tool_unknown_open${byTool})`]]
    ],
    [
      'Age of the oldest of them',
      'The alert SagadToolUnknownOld begins at 900 seconds.',
      's',
      [['{{tool}}', `max by (tool) (sagad_tool_unknown_oldest_seconds${byTool})`]]
    ]
  ],
  [
    'Sagas',
    [
      'Sagas started a second',
      'By definition; a definition appears with its first saga.',
      'ops',
      [['{{saga}}', ofDefinitions('sagad_definition_started_total')]]
    ],
    [
      'Sagas ended a second',
      'Compensated sagas were undone; abandoned ones were given up by a person.',
      'ops',
      [
        ['completed', all('sagad_sagas_completed_total')],
        ['compensated', all('sagad_sagas_compensated_total')],
        ['abandoned', all('sagad_sagas_abandoned_total')]
      ]
    ],
    [
      'Start to end of a saga',
      'Those that sleep or wait for a person count, too.',
      's',
      quantiles('sagad_saga_seconds')
    ],
    [
      'Sagas in memory, and held',
      'Parked sagas are in the database only. A hold lets nothing begin: `sagactl holds`.',
      'short',
      [
        ['in memory', 'sum(sagad_sagas_loaded)'],
        ['held', 'sum(sagad_sagas_held)']
      ]
    ]
  ],
  [
    'Tools',
    ['Calls a second', 'Retries are among them.', 'ops', [['{{tool}}', ofTools('sagad_tool_calls_total')]]],
    [
      'Retries a second',
      'A rise foretells an outage of the service behind the tool.',
      'ops',
      [['{{tool}}', ofTools('sagad_tool_retries_total')]]
    ],
    [
      'Circuit breakers',
      '0 is closed, 1 open, 2 half open. A breaker closes by itself when a probe succeeds.',
      'short',
      [['{{tool}}', `max by (tool) (sagad_tool_breaker_state${byTool})`]]
    ],
    [
      'Repeats that began nothing, by what they got',
      'No effect happens twice; a rise says that some caller forgets or loops.',
      'ops',
      [['{{tool}} {{decision}}', ofTools('sagad_tool_duplicates_total', 'tool, decision')]]
    ],
    [
      'Calls refused a second',
      'For want of budget, by a rate or a concurrency limit, and by an open breaker.',
      'ops',
      [
        ['{{tool}} budget', ofTools('sagad_tool_budget_refusals_total')],
        ['{{tool}} rate', ofTools('sagad_tool_rate_refusals_total')],
        ['{{tool}} breaker', ofTools('sagad_tool_breaker_refusals_total')]
      ]
    ],
    ['Time of a call', 'Over all tools.', 's', quantiles('sagad_call_seconds')]
  ],
  [
    'The engine and its database',
    [
      'New work refused a second',
      'What was accepted goes on. The log event `intake` says what is full or slow.',
      'ops',
      [
        ['full', all('sagad_refused_full_total')],
        ['slow', all('sagad_refused_slow_total')]
      ]
    ],
    ['Time of a group commit', 'A slow disk shows here first.', 's', quantiles('sagad_commit_seconds')],
    [
      'Database: trouble a second',
      'Failed statements, answers that did not come, and commits whose answer was lost.',
      'ops',
      [
        ['errors', all('sagad_database_errors_total')],
        ['unanswered', all('sagad_database_unanswered_total')],
        ['lost commits', all('sagad_batches_lost_total')]
      ]
    ],
    [
      'Shards',
      'All engines together own 64. Fewer for long means that a shard has no owner: `sagactl engines`.',
      'short',
      [
        ['{{instance}}', 'sum by (instance) (sagad_shards_owned)'],
        ['all', 'sum(sagad_shards_owned)']
      ]
    ],
    [
      'History lost, logs unreadable',
      'Neither should ever be above nought: read "Backup, and what a restore means" in engine/operations.md.',
      'short',
      [
        ['history lost', 'sum(sagad_history_lost_total)'],
        ['unreadable', 'sum(sagad_sagas_unreadable_total)']
      ]
    ],
    ['Memory', 'By process.', 'bytes', [['{{instance}}', 'sum by (instance) (sagad_resident_bytes)']]],
    [
      'Traces',
      'Dropped: the collector is away or refuses them. No saga waits for it.',
      'cps',
      [
        ['sent', 'sum(rate(sagad_traces_sent_total[$__rate_interval]))'],
        ['dropped', 'sum(rate(sagad_traces_dropped_total[$__rate_interval]))']
      ]
    ]
  ]
]

const datasource = { type: 'prometheus', uid: '${datasource}' }

const choice = (name, label, metric) => ({
  name,
  label,
  type: 'query',
  datasource,
  query: `label_values(${metric}, ${name})`,
  refresh: 2,
  includeAll: true,
  multi: true,
  allValue: '.*',
  current: { text: 'All', value: '$__all' }
})

function panels() {
  const width = 12
  const height = 8
  const made = []
  let y = 0
  for (const [title, ...members] of rows) {
    made.push({ id: made.length + 1, type: 'row', title, collapsed: false, gridPos: { x: 0, y: y++, w: 24, h: 1 } })
    members.forEach(([title, description, unit, queries], i) => {
      made.push({
        id: made.length + 1,
        type: 'timeseries',
        title,
        description,
        datasource,
        gridPos: { x: (i % 2) * width, y: y + Math.floor(i / 2) * height, w: width, h: height },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        targets: queries.map(([legendFormat, expr], at) => ({
          refId: String.fromCharCode(65 + at),
          legendFormat,
          expr
        }))
      })
    })
    y += Math.ceil(members.length / 2) * height
  }
  return made
}

const dashboard = {
  uid: 'sagad',
  title: 'sagad',
  description: 'Scrape sagad with a token of an admin of the namespace *; others see one namespace only.',
  tags: ['sagad'],
  schemaVersion: 38,
  editable: true,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  templating: {
    list: [
      { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
      choice('namespace', 'Namespace', 'sagad_definition_started_total'),
      choice('tool', 'Tool', 'sagad_tool_calls_total')
    ]
  },
  panels: panels()
}

console.log(JSON.stringify(dashboard, null, 2))
