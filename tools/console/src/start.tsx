// A form made from the input schema of a definition. What is typed is put together as text: a number keeps its digits.
// The service looks at the input; this form only helps to write it.
import { useRef, useState } from 'preact/hooks'
import { Problem, change, parse } from './api'
import { go } from './route'
import type { Definition, InputSchema, Me, Saga } from './types'
import { Act, Copy, Trouble, command, whyNot } from './ui'

type Values = Record<string, string>

const isPlain = (schema: InputSchema) =>
  schema.enum !== undefined || ['string', 'integer', 'number', 'boolean'].includes(String(schema.type))

function written(schema: InputSchema, text: string): string {
  if (schema.enum) return JSON.stringify(schema.enum.find((one) => String(one) === text) ?? text)
  if (schema.type === 'string') return JSON.stringify(text)
  return text.trim()
}

function inputOf(schema: InputSchema, values: Values) {
  const members = Object.entries(schema.properties ?? {})
    .filter(([name]) => values[name] !== undefined && values[name] !== '')
    .map(([name, member]) => `${JSON.stringify(name)}: ${written(member, values[name])}`)
  return `{${members.join(', ')}}`
}

function Field({
  name,
  schema,
  required,
  value,
  onChange
}: {
  name: string
  schema: InputSchema
  required: boolean
  value: string
  onChange: (value: string) => void
}) {
  const about = [schema.description, required ? 'required' : null, !isPlain(schema) && 'JSON']
    .filter(Boolean)
    .join(', ')
  const choices = schema.enum?.map(String) ?? (schema.type === 'boolean' ? ['true', 'false'] : null)
  return (
    <label>
      <span>
        {name} {about && <span class="muted">{about}</span>}
      </span>
      {choices ? (
        <select value={value} required={required} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="" />
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : isPlain(schema) ? (
        <input
          value={value}
          required={required && schema.type !== 'string'}
          inputMode={schema.type === 'string' ? undefined : 'decimal'}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      ) : (
        <textarea
          class="json-text"
          rows={3}
          value={value}
          required={required}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </label>
  )
}

export function Start({ definition, me }: { definition: Definition; me: Me }) {
  const schema = (definition.body?.input ?? {}) as InputSchema
  const hasForm = Object.keys(schema.properties ?? {}).length > 0
  const [values, setValues] = useState<Values>({})
  const [typed, setTyped] = useState<string | null>(hasForm ? null : '{}')
  const [id, setId] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const once = useRef(crypto.randomUUID())
  const input = typed ?? inputOf(schema, values)
  const why = whyNot(me, 'agent')

  async function start(event: Event) {
    event.preventDefault()
    setBusy(true)
    try {
      parse(input)
      const head = { saga: definition.name, version: definition.version, ...(id.trim() ? { id: id.trim() } : {}) }
      const body = `${JSON.stringify(head).slice(0, -1)},"input":${input}}`
      const saga = await change<Saga>('POST', 'v1/sagas', body, once.current)
      go(['saga', saga.id])
    } catch (error) {
      setProblem(
        error instanceof Problem ? error : new Problem(422, 'The input is no JSON', `What would be sent is ${input}`)
      )
    }
    setBusy(false)
  }
  return (
    <form class="verb bulk" onSubmit={(event) => void start(event)} aria-label="Start">
      {typed === null ? (
        Object.entries(schema.properties ?? {}).map(([name, member]) => (
          <Field
            key={name}
            name={name}
            schema={member}
            required={schema.required?.includes(name) ?? false}
            value={values[name] ?? ''}
            onChange={(value) => setValues({ ...values, [name]: value })}
          />
        ))
      ) : (
        <label>
          Input, JSON
          <textarea class="json-text" rows={6} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
      )}
      <label>
        <span>
          Business id <span class="muted">the same again is the same saga</span>
        </span>
        <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
      <Trouble problem={problem} />
      <div class="actions">
        {why ? (
          <Act why={why}>Start</Act>
        ) : (
          <button type="submit" class="main" disabled={busy}>
            {busy ? 'Starting …' : 'Start'}
          </button>
        )}
        {hasForm && (
          <button type="button" class="quiet" onClick={() => setTyped(typed === null ? input : null)}>
            {typed === null ? 'as JSON' : 'as a form'}
          </button>
        )}
        <Copy
          text={command('sagactl', 'start', definition.name, ...(id ? ['--id', id] : []), '--input', input)}
          label="copy as sagactl"
        />
      </div>
    </form>
  )
}
