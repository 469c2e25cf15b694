// An open saga: calls that stand or fall together. It ends with the function that drives it.
import type { CallOptions, Sagad } from './client.js'
import type { Outcome } from './outcome.js'

export class OpenSaga {
  constructor(
    private readonly sagad: Sagad,
    readonly id: string
  ) {}

  // Calls a tool in this saga: it is undone with the saga.
  call<R = unknown>(tool: string, options: Omit<CallOptions, 'run'> = {}): Promise<Outcome<R>> {
    return this.sagad.callInSaga<R>(this.id, tool, options)
  }
}

const noteLength = 500 // sagad takes 1000 bytes, and a character has at most two of these units

export function noteOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  // eslint-disable-next-line no-control-regex
  return (
    text
      .replace(/[\u0000-\u001f\u007f]+/g, ' ')
      .slice(0, noteLength)
      .trim() || 'its function failed'
  )
}
