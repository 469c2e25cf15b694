// How an agent speaks to sagad over the HTTP API. A door resolves to an answer of its client: {status, headers, text,
// json}, or {lost: why}; `manner` says how badly the agent listens (client.mjs).
export class HttpDoor {
  constructor(wish, client, wait = '5s') {
    this.wish = wish
    this.client = client
    this.wait = wait // how long a call is waited for
  }

  open(manner) {
    const { wish } = this
    const byHeader = wish.luck('id by header') < 0.3
    const body = {
      open: true,
      deadline: wish.deadline,
      on_timeout: 'abort',
      tags: { wish: wish.id },
      ...(byHeader ? {} : { id: wish.id })
    }
    const headers = byHeader ? { 'idempotency-key': wish.id } : {}
    return this.client.json('POST', '/v1/sagas', body, { manner, headers })
  }

  look(saga, manner) {
    return this.client.json('GET', `/v1/sagas/${saga}`, undefined, { manner })
  }

  // {tool, step?, scope?, turn?, emission?, args}, in a saga or a run; `args` is JSON text and goes out as it is.
  call({ saga, emission, args, ...body }, manner) {
    const path = saga ? `/v1/sagas/${saga}/calls` : '/v1/operations'
    return this.client.ask(
      'POST',
      `${path}?wait=${this.wait}`,
      `${JSON.stringify(body).slice(0, -1)},"args":${args}}`,
      { manner, headers: emission ? { 'idempotency-key': emission } : {} }
    )
  }

  end(saga, verb, manner) {
    const body = verb === 'abort' ? { note: 'the agent says so' } : {}
    return this.client.json('POST', `/v1/sagas/${saga}/${verb}`, body, { manner })
  }
}
