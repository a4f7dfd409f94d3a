// The APIs for batches of OpenAI and Anthropic as one HTTP server, after their public documentation:
// https://platform.openai.com/docs/api-reference/batch and https://platform.claude.com/docs/en/api/messages/batches, 2026-11.
// It runs nothing by itself: a test says when a batch ends, and with what.

export interface SentLine {
  readonly custom_id: string
  /** The request: `body` of a line, or `params`. */
  readonly body: Readonly<Record<string, unknown>>
  readonly url?: string
}

export interface HeldBatch {
  readonly id: string
  readonly kind: 'files' | 'messages'
  readonly lines: readonly SentLine[]
  readonly createdAt: number
  readonly order: Readonly<Record<string, unknown>>
  status: 'running' | 'completed' | 'failed' | 'expired' | 'cancelled'
  isCancelling: boolean
  /** Lines of the results, as they are sent. */
  results: string[]
}

type Answer = (line: SentLine) => { readonly status: number; readonly body: object } | 'expired' | 'cancelled'

export type BatchProvider = ReturnType<typeof startBatchProvider>

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } })

export function startBatchProvider() {
  const batches: HeldBatch[] = []
  const files = new Map<string, { readonly name: string; readonly text: string }>()
  const calls: string[] = []
  /** Answers in place of the next calls that it matches. */
  let fault: ((call: string) => Response | undefined) | undefined
  let next = 1

  const isoTime = (ms: number) => new Date(ms).toISOString()
  const seconds = (ms: number) => Math.floor(ms / 1000)
  const countsOf = ({ status, lines, results }: HeldBatch) =>
    status === 'running'
      ? { processing: lines.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
      : { processing: 0, succeeded: results.length, errored: 0, canceled: 0, expired: lines.length - results.length }

  const messageBatch = (batch: HeldBatch) => ({
    ...{ id: batch.id, type: 'message_batch', request_counts: countsOf(batch) },
    processing_status: batch.status === 'running' ? (batch.isCancelling ? 'canceling' : 'in_progress') : 'ended',
    ...{ created_at: isoTime(batch.createdAt), expires_at: isoTime(batch.createdAt + 86_400_000) },
    results_url: batch.status === 'running' ? null : `http://127.0.0.1:1/elsewhere/${batch.id}`,
  })

  const fileBatch = (batch: HeldBatch) => {
    const isDone = batch.status !== 'running'
    const status = isDone ? batch.status : batch.isCancelling ? 'cancelling' : 'in_progress'
    const errors =
      batch.status === 'failed'
        ? { object: 'list', data: [{ code: 'token_limit_exceeded', message: 'org-secret' }] }
        : null
    return {
      ...{ id: batch.id, object: 'batch', endpoint: batch.order.endpoint, input_file_id: batch.order.input_file_id },
      ...{ status, errors, completion_window: '24h', created_at: seconds(batch.createdAt) },
      output_file_id: isDone && files.has(`file-out-${batch.id}`) ? `file-out-${batch.id}` : null,
      error_file_id: isDone && files.has(`file-err-${batch.id}`) ? `file-err-${batch.id}` : null,
      metadata: batch.order.metadata,
    }
  }

  async function serve(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const call = `${request.method} ${url.pathname}`
    calls.push(call)
    const broken = fault?.(call)
    if (broken) return broken
    const key = request.headers.get('x-api-key') ?? request.headers.get('authorization')?.replace('Bearer ', '')
    if (!key?.startsWith('upstream-secret'))
      return json({ error: { type: 'authentication_error', message: 'who?' } }, 401)
    const [, , first = '', second = '', third = '', fourth = ''] = url.pathname.split('/')
    if (first === 'files') return await serveFiles(request, second, third)
    if (first === 'messages' && second === 'batches') return await serveMessages(request, third, fourth)
    if (first === 'batches') return await serveBatches(request, second, third)
    // A live call: the same gateway also has models without batches.
    return json({ error: { message: 'live calls are not part of this', type: 'invalid_request_error' } }, 400)
  }

  async function serveFiles(request: Request, id: string, part: string): Promise<Response> {
    if (request.method === 'POST') {
      const form = await request.formData()
      const file = form.get('file') as File
      if (form.get('purpose') !== 'batch') return json({ error: { message: 'purpose', code: 'bad_purpose' } }, 400)
      const name = `file-${next++}`
      files.set(name, { name: file.name, text: await file.text() })
      return json({ id: name, object: 'file', filename: file.name, purpose: 'batch' })
    }
    if (id === '')
      return json({ object: 'list', data: [...files].map(([each, { name }]) => ({ id: each, filename: name })) })
    const file = files.get(id)
    if (!file) return json({ error: { message: 'no such file', type: 'invalid_request_error' } }, 404)
    if (request.method === 'DELETE') {
      files.delete(id)
      return json({ id, deleted: true })
    }
    return part === 'content' ? new Response(file.text) : json({ id, filename: file.name })
  }

  async function serveBatches(request: Request, id: string, part: string): Promise<Response> {
    if (request.method === 'POST' && id === '') {
      const order = (await request.json()) as Record<string, unknown>
      const file = files.get(String(order.input_file_id))
      if (!file) return json({ error: { message: 'no such file', code: 'invalid_file' } }, 400)
      const lines = file.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as SentLine)
      return json(fileBatch(add('files', lines, order)))
    }
    return serveOne(request, { id, part, kind: 'files', show: fileBatch })
  }

  async function serveMessages(request: Request, id: string, part: string): Promise<Response> {
    if (request.method === 'POST' && id === '') {
      const order = (await request.json()) as { requests: { custom_id: string; params: Record<string, unknown> }[] }
      const wrong = order.requests.find(({ custom_id }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(custom_id))
      if (wrong) return json({ type: 'error', error: { type: 'invalid_request_error', message: 'custom_id' } }, 400)
      const lines = order.requests.map(({ custom_id, params }) => ({ custom_id, body: params }))
      return json(messageBatch(add('messages', lines, {})))
    }
    const batch = batches.find((each) => each.id === id)
    if (batch && part === 'results' && batch.status !== 'running') return new Response(batch.results.join('\n'))
    return serveOne(request, { id, part, kind: 'messages', show: messageBatch })
  }

  function serveOne(
    request: Request,
    { id, part, kind, show }: { id: string; part: string; kind: HeldBatch['kind']; show: (batch: HeldBatch) => object },
  ): Response {
    if (id === '') {
      const data = batches
        .filter((each) => each.kind === kind)
        .reverse()
        .map(show)
      return json({ object: 'list', data, has_more: false, last_id: null })
    }
    const at = batches.findIndex((each) => each.id === id && each.kind === kind)
    const batch = batches[at]
    if (!batch) return json({ type: 'error', error: { type: 'not_found_error', message: 'no such batch' } }, 404)
    if (request.method === 'DELETE') batches.splice(at, 1)
    if (part === 'cancel') batch.isCancelling = true
    return json(show(batch))
  }

  function add(kind: HeldBatch['kind'], lines: readonly SentLine[], order: HeldBatch['order']): HeldBatch {
    const id = kind === 'files' ? `batch_up${next++}` : `msgbatch_up${next++}`
    const facts = { id, kind, lines, order, createdAt: Date.now(), isCancelling: false }
    const batch: HeldBatch = { ...facts, status: 'running', results: [] }
    batches.push(batch)
    return batch
  }

  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: serve, idleTimeout: 0 })
  return {
    url: `http://127.0.0.1:${server.port}`,
    batches,
    files,
    calls,
    breakWith(change: typeof fault): void {
      fault = change
    },
    /** Resolves with the batch once there are so many. */
    async created(count = 1): Promise<HeldBatch> {
      for (;;) {
        const batch = batches[count - 1]
        if (batch) return batch
        await Bun.sleep(20)
      }
    },
    /** Ends a batch with an answer to each line; `change` may leave out, repeat or break lines of the results. */
    end(
      batch: HeldBatch,
      answer: Answer,
      {
        status = 'completed',
        change = (lines) => lines,
      }: { status?: HeldBatch['status']; change?: (lines: string[]) => string[] } = {},
    ): void {
      const rendered = batch.lines.map((line) => render(batch.kind, line, answer(line)))
      batch.results = change(rendered.map(({ text }) => text))
      if (batch.kind === 'files') {
        const errors = new Set(rendered.flatMap(({ text, isError }) => (isError ? [text] : [])))
        const [answers, wrong] = [
          batch.results.filter((text) => !errors.has(text)),
          batch.results.filter((text) => errors.has(text)),
        ]
        if (answers.length > 0) files.set(`file-out-${batch.id}`, { name: 'out', text: `${answers.join('\n')}\n` })
        if (wrong.length > 0) files.set(`file-err-${batch.id}`, { name: 'err', text: `${wrong.join('\n')}\n` })
      }
      batch.status = status
    },
    stop: () => server.stop(true),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

function render(kind: HeldBatch['kind'], { custom_id }: SentLine, said: ReturnType<Answer>) {
  if (kind === 'messages') {
    const result =
      typeof said === 'string'
        ? { type: said === 'expired' ? 'expired' : 'canceled' }
        : said.status === 200
          ? { type: 'succeeded', message: said.body }
          : { type: 'errored', error: said.body }
    return { text: JSON.stringify({ custom_id, result }), isError: false }
  }
  if (typeof said === 'string') {
    const error = { code: `batch_${said}`, message: 'not run' }
    return { text: JSON.stringify({ id: 'r', custom_id, response: null, error }), isError: true }
  }
  const response = { status_code: said.status, request_id: 'up', body: said.body }
  return { text: JSON.stringify({ id: 'r', custom_id, response, error: null }), isError: said.status !== 200 }
}

// ── Answers ──

/** Whatever was asked. */
export const usedTokens = { input: 10, output: 20 }

export const saysHello: Answer = ({ url, body }) => {
  const { input, output } = usedTokens
  const model = body.model
  if (url === '/v1/chat/completions') {
    const message = { role: 'assistant', content: 'Hello', refusal: null }
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    const choices = [{ index: 0, message, finish_reason: 'stop', logprobs: null }]
    return {
      status: 200,
      body: { id: 'c', object: 'chat.completion', created: 1, model, choices, usage, service_tier: 'default' },
    }
  }
  if (url === '/v1/responses') {
    const content = [{ type: 'output_text', text: 'Hello', annotations: [] }]
    const output_ = [{ id: 'm', type: 'message', role: 'assistant', status: 'completed', content }]
    const usage = {
      input_tokens: input,
      output_tokens: output,
      total_tokens: input + output,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    }
    return {
      status: 200,
      body: {
        id: 'resp_1',
        object: 'response',
        created_at: 1,
        status: 'completed',
        model,
        output: output_,
        usage,
        service_tier: 'default',
      },
    }
  }
  if (url === '/v1/embeddings') {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }]
    return { status: 200, body: { object: 'list', model, data, usage: { prompt_tokens: input, total_tokens: input } } }
  }
  const usage = {
    input_tokens: input,
    output_tokens: output,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    service_tier: 'batch',
  }
  const content = [{ type: 'text', text: 'Hello' }]
  return {
    status: 200,
    body: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage,
    },
  }
}

/** $1.00 and $2.00 per million tokens; half of that in batches. */
const price = `{ input: "1.00", output: "2.00", tiers: { batch: { input: "0.50", output: "1.00" } } }`

/** `test/chat` at `chatty`, `test/messages` at `messy`, `test/responses` at `ready`: all in batches. */
export function batchConfig(url: string, providers = 'chatty, messy, ready'): string {
  const names = {
    chat: ['chatty', 'openai-chat', '/v1'],
    messages: ['messy', 'anthropic-messages', ''],
    responses: ['ready', 'openai-responses', '/v1'],
  } as const
  const entries = Object.entries(names)
  return `
batches: { enabled: on, providers: [${providers}] }
providers:
${entries.map(([name, [id, dialect, path]]) => `  - { id: ${id}, dialect: ${dialect}, base_url: "${url}${path}", api_key: upstream-secret-${name} }\n`).join('')}models:
${entries.map(([name, [id]]) => `  - { id: test/${name}, price: ${price}, max_output_tokens: 8000, default_max_tokens: 4096, routes: [{ provider: ${id}, model: up-${name} }] }\n`).join('')}  - { id: test/vectors, price: { input: "1.00", output: "0", tiers: { batch: { input: "0.50", output: "0" } } }, tags: [embeddings], routes: [{ provider: chatty, model: up-vectors }] }
`
}
