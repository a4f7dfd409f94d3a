// The gateway as clients would meet it: whether its port is taken, by whom, and what a key sees in both shapes of the
// list of models. Nothing is generated.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientSettings } from '../../config/client-settings.ts'
import type { Config } from '../../config/config.ts'
import { Secret } from '../../kernel/secret.ts'
import { type JsonObject, objectOf, objectsOf } from '../json-members.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const answerMs = 5000

export async function checkGateway(settings: ClientSettings, config: Config | undefined): Promise<readonly Finding[]> {
  const { url } = settings
  const health = await ask(`${url}/healthz`, {})
  if (health === undefined) return [checkFreePort(url, config)]
  if (!health.headers.has('x-request-id') && health.status !== 200) {
    return [wrong('port', `another program answers at ${url}`, 'stop it, or TOLLGATE_PORT=another port')]
  }
  const ready = await ask(`${url}/readyz`, {})
  const findings: Finding[] = [
    ready?.status === 200
      ? ok('gateway', `serves at ${url}`)
      : wrong('gateway', `runs at ${url} but cannot serve (${ready?.status ?? 'no answer'})`, 'see its log'),
  ]
  findings.push(checkToken(settings, await askWithToken(settings)))
  return [...findings, ...(await checkModels(settings))]
}

function checkFreePort(url: string, config: Config | undefined): Finding {
  const advice = 'start it: npm start'
  if (config === undefined) return note('gateway', `nothing answers at ${url}`, advice)
  const { host, port } = config
  try {
    const server = Bun.listen({ hostname: host, port, socket: { data: () => {} } })
    server.stop(true)
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : 'unknown'
    const what = `${host}:${port} cannot be listened on (${code})`
    return wrong('port', what, 'stop the program that has it, or TOLLGATE_PORT=another port')
  }
  return note('port', `${host}:${port} is free, the gateway does not run`, advice)
}

async function askWithToken({ url, token }: ClientSettings): Promise<Response | undefined> {
  if (token === undefined) return undefined
  return await ask(`${url}/api/workspaces?limit=1`, { authorization: `Bearer ${token.reveal()}` })
}

function checkToken({ token, tokenAbsence }: ClientSettings, answer: Response | undefined): Finding {
  const area = 'management'
  if (token === undefined) return note(area, `no token: ${tokenAbsence}`, 'TOLLGATE_ADMIN_TOKEN=…')
  if (answer?.status === 200) return ok(area, 'the token is accepted')
  const advice = 'TOLLGATE_ADMIN_TOKEN=… , or TOLLGATE_DATA=FOLDER of the gateway'
  return wrong(area, `the token is not accepted (${answer?.status ?? 'no answer'})`, advice)
}

async function checkModels({ url, apiKey, dataFolder }: ClientSettings): Promise<readonly Finding[]> {
  const key = apiKey ?? firstKey(dataFolder)
  if (key === undefined) return [note('models', 'not asked for: there is no key at hand', 'TOLLGATE_KEY=sk-tg-…')]
  const name = apiKey === undefined ? 'the first key' : 'TOLLGATE_KEY'
  const shapes = [
    { shape: 'OpenAI', headers: { authorization: `Bearer ${key.reveal()}` }, fits: isChatList },
    {
      shape: 'Anthropic',
      headers: { 'x-api-key': key.reveal(), 'anthropic-version': '2023-06-01' },
      fits: isMessageList,
    },
  ]
  return await Promise.all(
    shapes.map(async ({ shape, headers, fits }) => {
      const response = await ask(`${url}/v1/models?limit=1000`, headers)
      return modelsFinding(shape, name, response, fits)
    }),
  )
}

async function modelsFinding(
  shape: string,
  name: string,
  response: Response | undefined,
  fits: (list: JsonObject) => boolean,
): Promise<Finding> {
  const area = 'models'
  if (response?.status === 401) {
    return note(area, `${name} is not accepted, revoked perhaps`, 'TOLLGATE_KEY=sk-tg-… of another key')
  }
  const list = objectOf(await response?.json().catch(() => undefined))
  if (response?.status !== 200 || !fits(list)) {
    const what = `/v1/models in ${shape}'s shape fails with ${name} (${response?.status ?? 'no answer'})`
    return wrong(area, what, "see the gateway's log; is a proxy in between?")
  }
  const count = objectsOf(list.data).length
  const what = `${name} sees ${count} models in ${shape}'s shape`
  return count > 0 ? ok(area, what) : note(area, what, 'set a provider variable, or widen its allowlist')
}

function isChatList(list: JsonObject): boolean {
  return list.object === 'list' && objectsOf(list.data).every(({ object, id }) => object === 'model' && isText(id))
}

function isMessageList(list: JsonObject): boolean {
  const items = objectsOf(list.data)
  return typeof list.has_more === 'boolean' && items.every(({ type, id }) => type === 'model' && isText(id))
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function firstKey(dataFolder: string): Secret | undefined {
  try {
    const text = readFileSync(join(dataFolder, 'first-key'), 'utf8').trim()
    return text === '' ? undefined : new Secret(text)
  } catch {
    return undefined
  }
}

/** undefined = nobody answers. */
async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<Response | undefined> {
  try {
    return await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(answerMs) })
  } catch {
    return undefined
  }
}
