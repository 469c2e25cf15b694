// One saga.
import { useLive } from '../live'
import { State } from '../state'
import { Age, At } from '../time'
import type { Saga } from '../types'
import { Copy, Fact, Facts, Json, Loading, Tags, Trouble, command, isNothing } from '../ui'
import type { ViewProps } from './index'

export function SagaView({ route }: ViewProps) {
  const id = route.path[1] ?? ''
  const live = useLive<Saga>(`v1/sagas/${encodeURIComponent(id)}`, 2000)
  const saga = live.data

  if (!saga)
    return (
      <>
        <h1>Saga {id}</h1>
        {live.problem ? <Trouble problem={live.problem} retry={live.refresh} /> : <Loading what="the saga" />}
      </>
    )
  return (
    <>
      <div class="title">
        <h1>{saga.business_id ?? saga.id}</h1>
        <State state={saga.status} />
        <Copy text={command('sagactl', 'show', saga.id)} label="copy as sagactl" />
      </div>
      <Facts>
        <Fact name="Definition">
          {saga.saga} v{saga.version}
        </Fact>
        <Fact name="Id">
          <code>{saga.id}</code>
        </Fact>
        <Fact name="Started">
          <At at={saga.created_at} />
        </Fact>
        <Fact name="Changed">
          <Age at={saga.updated_at} />
        </Fact>
        <Fact name="Tags">
          <Tags tags={saga.tags} />
        </Fact>
      </Facts>
      <h2>Steps</h2>
      <div class="table" role="region" aria-label="Steps" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Status</th>
              <th scope="col">Tool</th>
              <th scope="col">Attempts</th>
              <th scope="col">Error</th>
            </tr>
          </thead>
          <tbody>
            {saga.steps.map((step) => (
              <tr key={step.id}>
                <td>{step.id}</td>
                <td>
                  <State state={step.status} />
                </td>
                <td>{step.tool ?? '–'}</td>
                <td>{step.attempts}</td>
                <td>{step.error?.detail ?? step.error?.code ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Input</h2>
      <Json value={saga.input} label="Input" />
      {!isNothing(saga.output) && (
        <>
          <h2>Output</h2>
          <Json value={saga.output} label="Output" />
        </>
      )}
    </>
  )
}
