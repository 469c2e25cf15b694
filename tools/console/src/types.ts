// What the API answers, as far as the console reads it. schema/openapi.json is the contract.
export type Role = 'reader' | 'agent' | 'operator' | 'admin'

export interface Me {
  name: string
  namespace: string
  namespaces: string[] // "*": any
  role: Role
  expires_at: string | null
}

export interface Page<T> {
  items: T[]
  next_cursor: string | null
  looked_to?: string
  looked_count?: number
  hasMore?: boolean // of several namespaces: one of them has more, and no cursor leads there
}

export interface SagaRow {
  id: string
  namespace?: string // in a list of several
  saga: string
  version: number
  business_id: string | null
  status: string
  tags: Record<string, string> | null
  created_at: string
  updated_at: string
  ended_at: string | null
}

export interface StatusCount {
  group: { status: string }
  count: number
}

export interface OperationError {
  code: string
  detail?: string | null
  attempt?: number
  status?: number
  body?: unknown
  cut?: boolean
  by?: string
}

export interface Held {
  n: number
  since: string
  until: string | null
  actor: string
  note: string
}

export interface Trying {
  what: string
  since: string | null
  times: number
  last_at: string | null
  last_error: string | null
  next_at: string | null
  person_at: string | null
}

export interface Compensation {
  status: string
  key: string | null
  attempts: number
  result: unknown
  error: OperationError | null
  trying?: Trying
  held?: Held
  undone_by?: string
  undone_note?: string
  order?: number | null
  started_at?: string | null
  ended_at?: string | null
}

export interface Step {
  id: string
  kind?: string
  group?: string | null
  tool: string | null
  status: string
  took_effect: string
  key: string | null
  attempts: number
  unsent?: number
  waits_for?: Record<string, unknown> | null
  due_at?: string | null
  trying?: Trying
  held?: Held
  result: unknown
  result_error?: string
  error: OperationError | null
  started_at: string | null
  ended_at: string | null
  compensation: Compensation | null
}

export interface Saga {
  id: string
  saga: string | null
  version: number | null
  business_id: string | null
  status: string
  input: unknown
  output: unknown
  steps: Step[]
  escalation: Escalation | number | null
  error: { code?: string; detail?: string; step?: string; actor?: string; note?: string } | null
  cost: unknown
  tags: Record<string, string> | null
  debts?: string[]
  deadline: string | null
  created_at: string
  updated_at: string
  ended_at: string | null
  open?: boolean
  run?: string
  paused?: string | null
  paused_by?: string | null
  paused_note?: string | null
  budget?: Record<string, number | null> | null // limits; null: none
  used?: Record<string, number | null> | null
  followers?: { saga: string; business_id: string | null }[]
}

export interface Round {
  round: number
  reason: string
  opened_at: string
  resolved_at: string | null
  action: string | null
  as: string | null
  actor: string | null
  note: string | null
}

export interface Escalation {
  namespace?: string // in a list of several
  n: number
  saga: string
  saga_name: string | null
  business_id: string | null
  tags: Record<string, string>
  step: string | null
  operation: string | null
  tool: string | null
  error: string | null
  detail?: string | null
  cost: number | null
  currency?: string
  cost_estimated?: boolean
  reason: string
  status: string
  opened_at: string
  round?: number
  earlier?: Round[]
  asked_by?: string | null
  asked_note?: string | null
  acknowledged_by?: string | null
  assigned_to?: string | null
  remarks?: { kind: string; at: string; actor: string; note: string; to?: string | null }[]
  evidence: Record<string, unknown>
  actions: { action: string; does: string }[]
  resolved_at: string | null
  action: string | null
  as?: string | null
  actor: string | null
  note: string | null
}

export interface PreviewEnd {
  if: string | null
  unless_begins: string | null
  status: string
  waits_for: string | null
  calls: { step: string; tool: string; direction: string }[]
  undone: string[]
  standing: { step: string; took_effect: string }[]
}

export interface PreviewVerb {
  verb: string
  as?: string
  then?: string
  allowed: boolean
  refused?: string
  because?: string
  accept_double?: boolean
  ends?: PreviewEnd[]
}

export interface Preview {
  assumes: string
  verbs: PreviewVerb[]
}

export interface LogEntry {
  seq: number
  at: string
  type: string
  step?: string | null
  key?: string | null
  attempt?: number
  actor?: string | null
  data: Record<string, unknown>
}

export interface CaseGroup {
  namespace?: string
  group: Record<string, string | null>
  count: number
  oldest: string
  newest: string
  costs: { currency: string | null; micros: number; cases: number }[]
  without_cost: number
}

export interface Counted {
  reason: string
  count: number
  examples: string[]
}

export interface BulkJob {
  bulk: string
  state: string
  count: number
  action: string
  as?: string
  then?: string
  note: string
  filter?: Record<string, unknown>
  looked: number
  applies: number
  refused: Counted[]
  unmatched: Counted[]
  leads_to: { status: string; count: number }[]
  sample: { saga: string; saga_name: string | null; business_id: string | null; step?: string | null }[]
  outcomes: { open: number; done: number; changed: number; refused: number }
  created_at: string
  created_by: string
  expires_at: string
  run: { actor: string; at: string } | null
  stop: { actor: string; at: string; note?: string } | null
  ended_at: string | null
}

export interface BulkItem {
  n: number
  saga: string
  saga_name: string | null
  business_id: string | null
  step: string | null
  escalation: number | null
  outcome: string
  error: { code?: string; message?: string; detail?: string | null } | null
}

export interface SeriesRow {
  at: string
  started?: number
  completed?: number
  compensated?: number
  abandoned?: number
  escalated?: number
  calls?: number
  retries?: number
  calls_unknown?: number
  duplicates?: number
}

export interface Series {
  step: string
  from: string
  to: string
  items: SeriesRow[]
  next_from: string | null
}

export interface ToolHealth {
  name: string
  calls: number
  retries: number
  completed: number
  failed: number
  unknown: number
  duplicates?: Record<string, number>
  retry_rate?: number
  duplicate_rate?: number
  unknown_open?: number
  unknown_oldest_ms?: number
  drift?: number
  budget_refusals?: number
  rate_refusals?: number
  breaker_refusals?: number
}

export interface Guard {
  tool: string
  endpoint: string
  breaker: string
  opened_by?: { actor: string; at: string; note: string }
  open_until?: string
}

export interface Stats {
  sagas: Record<string, number>
  ended_since: string
  tools?: ToolHealth[]
  guards?: Guard[]
}

export interface Engines {
  items: {
    name: string
    instance: string
    version: string
    state: string
    started_at: string
    shards: number[]
    lease_left_ms: number
  }[]
  unowned: unknown
  database?: {
    version: string
    engine_ahead_ms: number
    losses_open: number
    connections: number
    connections_max: number
    standbys: number
    standby_lag_ms: number | null
    settings?: Record<string, string>
  }
}

export interface Hold {
  n: number
  tool?: string
  saga?: string
  namespace?: string
  tag?: Record<string, string>
  note: string
  starts: string
  undo: boolean
  pace: number
  until: string | null
  actor: string
  made_at: string
  status: string
  released: { at: string; actor: string; note: string } | null
  in_force?: boolean
  ignored_by?: string[]
}

export interface Approval {
  namespace?: string
  n: number
  saga: string
  saga_name: string | null
  business_id: string | null
  step: string
  show: unknown
  hash: string
  roles?: Role[]
  not_by?: string
  opened_at: string | null
  expires_at: string | null
  status: string
  decided_at: string | null
  actor: string | null
  note: string | null
}

export interface StepDefinition {
  id: string
  call?: string
  saga?: string
  signal?: unknown
  approve?: unknown
  sleep?: unknown
  after?: string[]
  when?: unknown
  for_each?: unknown
  on_failure?: unknown
}

export interface InputSchema {
  type?: string
  description?: string
  enum?: unknown[]
  properties?: Record<string, InputSchema>
  required?: string[]
}

export interface ProofEnd {
  step: string | null
  direction: 'do' | 'undo'
  what: string
  settled: string
  place: string | null
  end: string
  waits_for: string | null
  undone: string[]
  standing: string[]
  violation: string | null
}

export interface Proof {
  saga: string
  ok: boolean
  violations: number
  covered: { points: number; plays: number; states: number; all_states: boolean; all_points: boolean }
  ends: ProofEnd[]
}

export interface Definition {
  kind: string
  name: string
  version: number
  created_at: string
  body?: Record<string, unknown>
  versions?: { version: number; created_at: string; unfinished: number }[]
}

export interface Operation {
  key: string
  state: string
  took_effect: string
  run: string
  saga: string | null
  step: string
  tool: string
  tool_version: number
  scope: string | null
  class: string
  attempts: number
  args: unknown
  result: unknown
  error: OperationError | null
  cost: unknown
  currency?: string
  duplicates_seen?: number
  first_sent_at: string | null
  created_at: string | null
}

export interface ActRow {
  namespace?: string // of a list of several
  id: string
  at: string
  actor: string
  role: string
  via: 'token' | 'session' | 'local'
  address: string | null
  verb: string
  kind: string | null
  target: string | null
  detail: string | null
  saga: string | null
  saga_name: string | null
  business_id: string | null
  tool: string | null
  note: string | null
  outcome: 'done' | 'refused'
  code: string | null
  count: number
  last_at: string
}
