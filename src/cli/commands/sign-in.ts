// `tollgate login`, `token`, `logout`, `whoami` and `proxy`: a person signs in once, and the programs of this machine use
// short-lived tokens instead of a pasted key.

import type { AnswerOf } from '../../api/client.ts'
import { variable } from '../../config/environment.ts'
import { type CommandContext, type CommandDefinition, printResult } from '../command.ts'
import { localKey, portOption, readPort, startProxy } from '../local-proxy.ts'
import { usageRefusal } from '../refusal.ts'
import {
  type DeviceGrant,
  isExposed,
  readGatewayUrl,
  redeemDeviceGrant,
  revokeTokens,
  startDeviceGrant,
  untilApproved,
} from '../sign-in.ts'
import { openSignIns, type SignIn, type SignInStore, signedOut } from '../stored-sign-ins.ts'
import { cleanText, renderFacts, shownTime } from '../values.ts'

const gateway = { name: 'URL', isOptional: true } as const
const whichGateway = 'Without URL it is TOLLGATE_URL, or the only gateway that you are signed in to.'

export function signInsOf({ settings, clock }: CommandContext): SignInStore {
  return openSignIns({ configFolder: settings.configFolder, clock })
}

/** The gateway of a command; undefined = none is named, and there is no sign-in. Throws if it could be several. */
export function namedGateway({ inputs }: CommandContext, typed: string, store: SignInStore): string | undefined {
  const given = typed || variable(inputs.env, 'TOLLGATE_URL')
  if (given !== undefined) return readGatewayUrl(given)
  const [only, ...others] = store.list()
  if (others.length === 0) return only?.gateway
  const all = store.list().map((each) => each.gateway)
  throw usageRefusal(`you are signed in to ${all.join(' and ')}; say which.`, `tollgate COMMAND ${all[0]}`)
}

/** The same for commands that need a sign-in. */
function signedInGateway(context: CommandContext, store: SignInStore): string {
  return namedGateway(context, context.first, store) ?? failSignedOut(context)
}

function failSignedOut({ settings }: CommandContext): never {
  throw signedOut(settings.url)
}

const loginCommand: CommandDefinition = {
  words: ['login'],
  isLocal: true,
  summary: 'signs you in to a gateway, for coding agents and other programs on this machine',
  details: `Prints an address and a code, and waits until you have approved the code in a browser, on any device. The tokens are
kept in sign-ins/ in ~/.config/tollgate (or XDG_CONFIG_HOME), readable by you only; each access token is valid for minutes.
No browser is opened. Without URL it is TOLLGATE_URL, or the gateway of this machine.`,
  positionals: [gateway],
  options: { 'allow-http': { help: 'also without encryption to another machine, in a network you trust' } },
  examples: ['tollgate login https://gate.example.com', 'tollgate connect claude    # afterwards'],
  async run(context) {
    const { first, settings, terminal, clock, isSet } = context
    const url = readGatewayUrl(first || settings.url)
    if (isExposed(url) && !isSet('allow-http')) {
      const what = `${url} is not encrypted: everyone on the way could read your tokens.`
      throw usageRefusal(
        what,
        `tollgate login ${url.replace('http:', 'https:')}, or --allow-http in a network you trust`,
      )
    }
    const grant = await startDeviceGrant(url)
    terminal.complain(loginText(url, grant))
    const tokens = await untilApproved(grant, {
      ask: () => redeemDeviceGrant(url, grant),
      wait: Bun.sleep,
      now: clock.monotonicMs,
    })
    const store = signInsOf(context)
    const earlier = await store.put(url, tokens)
    // It would stay in the list of signed-in devices for months. Not important enough to fail for.
    if (earlier) await revokeTokens(url, earlier.access_token, earlier.refresh_token)
    printResult(context, { gateway: url, email: tokens.email }, () => {
      return `Signed in to ${url} as ${cleanText(tokens.email)}.\n`
    })
    if (!context.json) terminal.complain('Next: tollgate connect NAME, for claude, codex, opencode and others.\n')
  },
}

function loginText(url: string, grant: DeviceGrant): string {
  const { verification_uri: address, verification_uri_complete: complete, user_code: code, expires_in: seconds } = grant
  const { login_notice: notice } = grant
  return [
    ...(notice === undefined ? [] : [cleanText(notice), '']),
    `To sign in to ${url}, open`,
    '',
    `  ${cleanText(complete ?? address)}`,
    '',
    complete === undefined ? 'and enter the code' : 'and check that it shows the code',
    '',
    `  ${cleanText(code)}`,
    '',
    `Waiting until you approve it in the browser, for up to ${Math.ceil(seconds / 60)} minutes. Ctrl-C cancels.`,
    '',
  ].join('\n')
}

const tokenCommand: CommandDefinition = {
  words: ['token'],
  isLocal: true,
  summary: 'prints an access token, for programs that call a command to get one',
  details: `Standard output has the token alone. It is valid for at least 5 minutes: one with less time left is refreshed first. When
you are signed out, it exits with 1 and says so in one line on standard error. It never asks, opens no browser and ends
within 5 seconds. ${whichGateway}`,
  positionals: [gateway],
  examples: ['tollgate token https://gate.example.com', 'curl -H "Authorization: Bearer $(tollgate token)" …'],
  async run(context) {
    const store = signInsOf(context)
    const entry = await store.fresh(signedInGateway(context, store))
    const { access_token, access_expires_at } = entry
    printResult(context, { access_token, expires_at: access_expires_at }, () => `${access_token}\n`)
  },
}

const logoutCommand: CommandDefinition = {
  words: ['logout'],
  isLocal: true,
  summary: 'signs you out of a gateway: revokes the tokens of this machine and deletes them',
  details: whichGateway,
  positionals: [gateway],
  examples: ['tollgate logout', 'tollgate logout https://gate.example.com'],
  async run(context) {
    const store = signInsOf(context)
    const url = signedInGateway(context, store)
    const entry = await store.remove(url)
    if (entry === undefined) throw signedOut(url)
    const trouble = await revokeTokens(url, entry.access_token, entry.refresh_token)
    printResult(context, { gateway: url, email: entry.email, revoked: trouble === undefined }, () => {
      return `Signed out of ${url}. The tokens of this machine are deleted.\n`
    })
    if (trouble === undefined) return
    const advice = `To end the sign-in there: ${url}/console, Account.`
    context.terminal.complain(`${url} did not revoke them: ${trouble}. ${advice}\n`)
  },
}

const whoamiCommand: CommandDefinition = {
  words: ['whoami'],
  summary: 'shows who you are signed in as, or who the management token belongs to and its roles',
  details: `With a sign-in (tollgate login) it shows that; otherwise the management token. ${whichGateway}`,
  positionals: [gateway],
  examples: ['tollgate whoami', 'tollgate whoami https://gate.example.com', 'TOLLGATE_ADMIN_TOKEN=… tollgate whoami'],
  async run(context) {
    const store = signInsOf(context)
    // A token in the environment is chosen for this command.
    const hasToken = variable(context.inputs.env, 'TOLLGATE_ADMIN_TOKEN') !== undefined && context.first === ''
    const url = hasToken ? undefined : namedGateway(context, context.first, store)
    const entry = url === undefined ? undefined : store.find(url)
    if (entry !== undefined) return await showSignIn(context, store, entry)
    if (context.first !== '') throw signedOut(url ?? context.settings.url)
    const me = await context.api.call('getMe', {})
    printResult(context, me, () => renderFacts(whoFacts(me)))
  },
}

async function showSignIn(context: CommandContext, store: SignInStore, entry: SignIn): Promise<void> {
  // Asks the gateway only if the token is about to expire, which then also tells whether the sign-in still exists.
  const { gateway: url, email, workspace, project, signed_in_at, access_expires_at } = await store.fresh(entry.gateway)
  const facts = { gateway: url, email, workspace, project, signed_in_at, access_expires_at }
  printResult(context, facts, () =>
    renderFacts([
      ['person', email],
      ['workspace', workspace],
      ['project', project],
      ['gateway', url],
      ['signed in', `${shownTime(signed_in_at)} UTC`],
      ['token', `valid until ${shownTime(access_expires_at)} UTC, renewed when a program needs it`],
    ]),
  )
}

function whoFacts({ kind, person, is_operator, workspaces }: AnswerOf<'getMe'>): [string, string][] {
  return [
    ['caller', person ? `${cleanText(person.email)} (${kind})` : 'the installation, by its management token'],
    ...(is_operator ? [['role', 'operator'] as [string, string]] : []),
    ...workspaces.map(({ id, name, role }): [string, string] => [role, `${cleanText(name)} (${id})`]),
  ]
}

const proxyCommand: CommandDefinition = {
  words: ['proxy'],
  isLocal: true,
  summary: 'serves the gateway on this machine for programs that cannot fetch tokens themselves',
  details: `Listens on 127.0.0.1 and adds your access token to each request. It accepts only programs that send its own key, which
tollgate connect writes into their settings and which is worth nothing elsewhere. Runs until it is stopped. ${whichGateway}`,
  positionals: [gateway],
  options: { port: portOption },
  examples: ['tollgate proxy', 'tollgate connect gemini    # points Gemini CLI at it'],
  async run(context) {
    const { settings } = context
    const store = signInsOf(context)
    const url = signedInGateway(context, store)
    // Says at once that the person is signed out, instead of at the first request.
    const { email } = await store.fresh(url)
    const key = localKey(settings.configFolder)
    const proxy = await startProxy({
      gateway: url,
      key,
      port: readPort(context.text('port')),
      token: () => store.fresh(url),
    })
    printResult(context, { url: proxy.url, gateway: url, email }, () => {
      return `Serving ${url} on ${proxy.url} as ${cleanText(email)}. Ctrl-C stops it.\n`
    })
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
    })
    await proxy.stop()
  },
}

export const signInCommands: readonly CommandDefinition[] = [
  loginCommand,
  tokenCommand,
  logoutCommand,
  whoamiCommand,
  proxyCommand,
]
