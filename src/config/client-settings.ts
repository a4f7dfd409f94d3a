// Finds the gateway for commands: its address, management token and folders, from the environment and the file that the
// gateway is started with. It connects to nothing.

import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { Secret } from '../kernel/secret.ts'
import { type ConfigInputs, factsOf, loadConfig } from './config.ts'
import { type ConfigFault, valueAt } from './document.ts'
import { configPathOf, type Environment, readVariables, travelsInHeader, variable } from './environment.ts'
import { type Setting, type SettingValues, settingValues } from './setting.ts'
import { sections } from './settings.ts'

export interface ClientSettings {
  /** The gateway's root, without a slash at the end. */
  readonly url: string
  /** undefined = none was found; `tokenAbsence` says why. */
  readonly token: Secret | undefined
  readonly tokenAbsence: string
  /** The key for clients, TOLLGATE_KEY. */
  readonly apiKey: Secret | undefined
  /** Absolute. */
  readonly dataFolder: string
  /** undefined = the embedded database in the data folder. */
  readonly databaseUrl: Secret | undefined
  /** Where this user's programs keep their settings. */
  readonly homeFolder: string
  readonly configFolder: string
  /** undefined = Claude Code's default. */
  readonly claudeFolder: string | undefined
  /** The same for Codex; undefined = `.codex` in the home folder. */
  readonly codexFolder: string | undefined
  /** Faults in the settings; the gateway may still run with the last valid ones. */
  readonly doubts: readonly ConfigFault[]
}

/** The settings do not say where the gateway listens. */
export interface RefusedClientSettings {
  readonly faults: readonly ConfigFault[]
}

/** `not called`: for commands that only use the database; an unknown port is no fault then. */
export function readClientSettings(
  inputs: ConfigInputs,
  gateway: 'called' | 'not called' = 'called',
): ClientSettings | RefusedClientSettings {
  const { env } = inputs
  const given = variable(env, 'TOLLGATE_URL')
  const loaded = loadConfig(inputs)
  // With TOLLGATE_URL the command needs no file: the gateway may run elsewhere, with another one.
  const faults = 'faults' in loaded ? loaded.faults : []
  const place = 'faults' in loaded ? readGatewayPlace(inputs, faults, gateway) : loaded.config
  if (place === undefined && given === undefined) return { faults }
  const { host, port, dataFolder } = place ?? placeOf({ data: variable(env, 'TOLLGATE_DATA') }, inputs)
  const address = given === undefined ? listenAddress(env, { host, port, dataFolder }, gateway) : givenAddress(given)
  if ('fault' in address) return { faults: [address.fault] }

  const databaseUrl = variable(env, 'DATABASE_URL')
  const homeFolder = variable(env, 'HOME') ?? homedir()
  return {
    url: address.url,
    ...findToken(env, dataFolder, new URL(address.url)),
    apiKey: secretVariable(env, 'TOLLGATE_KEY'),
    dataFolder,
    databaseUrl: databaseUrl === undefined ? undefined : new Secret(databaseUrl),
    homeFolder,
    configFolder: variable(env, 'XDG_CONFIG_HOME') ?? join(homeFolder, '.config'),
    claudeFolder: variable(env, 'CLAUDE_CONFIG_DIR'),
    codexFolder: variable(env, 'CODEX_HOME'),
    doubts: given === undefined ? faults : [],
  }
}

type Address = { readonly url: string } | { readonly fault: ConfigFault }

/** A path that ends in /v1, as SDKs take it, means the root above it. */
function givenAddress(text: string): Address {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.search + url.hash !== '') {
    return addressFault('TOLLGATE_URL', 'expected an address such as http://127.0.0.1:8080')
  }
  return { url: `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}` }
}

/** The environment first, then the address that the gateway wrote to its data folder, then the configured one. */
function listenAddress(
  env: Environment,
  { host, port, dataFolder }: GatewayPlace,
  gateway: 'called' | 'not called',
): Address {
  const isSet = variable(env, 'TOLLGATE_HOST') !== undefined || variable(env, 'TOLLGATE_PORT') !== undefined
  // Port 0 is any free port, so it does not say where the gateway listens.
  const noted = isSet && port !== 0 ? undefined : readAddressFile(dataFolder)
  if (noted) return reachedAt(noted.hostname.replace(/^\[|\]$/g, ''), Number(noted.port || 80))
  if (port === 0 && gateway === 'called')
    return addressFault('TOLLGATE_PORT', 'is 0, any free port; set TOLLGATE_URL to what the gateway printed')
  return reachedAt(host, port)
}

/** A wildcard address is reached at the loopback address. */
function reachedAt(host: string, port: number): Address {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return { url: `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}` }
}

function addressFault(field: string, message: string): Address {
  return { fault: { where: 'environment', field, message } }
}

/** The token in the file belongs to the gateway of this machine; it is not sent to another one. */
function findToken(env: Environment, dataFolder: string, url: URL): Pick<ClientSettings, 'token' | 'tokenAbsence'> {
  const set = secretVariable(env, 'TOLLGATE_ADMIN_TOKEN')
  if (set !== undefined) return { token: set, tokenAbsence: '' }
  if (!isThisMachine(url.hostname)) {
    return { token: undefined, tokenAbsence: `TOLLGATE_ADMIN_TOKEN is not set, and ${url.host} is not this machine` }
  }
  const file = join(dataFolder, 'admin-token')
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (text !== '' && travelsInHeader(text)) return { token: new Secret(text), tokenAbsence: '' }
    return { token: undefined, tokenAbsence: `${file} holds no token` }
  } catch {
    return { token: undefined, tokenAbsence: `TOLLGATE_ADMIN_TOKEN is not set, and ${file} cannot be read` }
  }
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.[0-9.]+$/.test(host)
}

/** A value that cannot be sent in a header counts as not set; the gateway reports it. */
function secretVariable(env: Environment, name: string): Secret | undefined {
  const value = variable(env, name)
  return value !== undefined && travelsInHeader(value) ? new Secret(value) : undefined
}

/**
 * A running gateway writes its address to this file of the data folder, because a port chosen for one start or by the
 * system is in no setting. The file stays when the gateway stops.
 */
export const addressFile = 'address'

/** undefined = there is none. */
function readAddressFile(dataFolder: string): URL | undefined {
  try {
    const url = URL.parse(readFileSync(join(dataFolder, addressFile), 'utf8').trim())
    return url?.protocol === 'http:' ? url : undefined
  } catch {
    return undefined
  }
}

const { host, port, data } = sections.server.settings
const placeSettings = { host, port, data }

/** Where a gateway listens and keeps its data. */
type GatewayPlace = SettingValues<typeof placeSettings>

function placeOf(given: Readonly<Record<string, unknown>>, inputs: ConfigInputs): GatewayPlace {
  return settingValues(placeSettings, given, factsOf(inputs))
}

/**
 * Reads from an invalid configuration where its gateway listens and keeps its data: a running gateway keeps the
 * last valid file, so commands should find it. undefined = one of the faults is in these settings. A command that does not
 * call the gateway writes to the data folder, so the folder is not guessed from a file that cannot be parsed.
 */
function readGatewayPlace(
  inputs: ConfigInputs,
  faults: readonly ConfigFault[],
  gateway: 'called' | 'not called',
): GatewayPlace | undefined {
  if (faults.some(isOfPlace)) return undefined
  const isUnreadable = faults.some(({ field }) => field === '')
  if (isUnreadable && gateway === 'not called' && variable(inputs.env, 'TOLLGATE_DATA') === undefined) return undefined
  const section = readServerSection(inputs)
  const fromFile = Object.entries<Setting>(placeSettings).flatMap(([key, { schema }]) => {
    const { success, data } = schema.safeParse(section[key])
    return success ? [[key, data]] : []
  })
  return placeOf({ ...Object.fromEntries(fromFile), ...readVariables(inputs.env, []).sections.server }, inputs)
}

/** Also an unknown key of `server`: it may be one of these, misspelt. */
function isOfPlace({ field }: ConfigFault): boolean {
  const variables: readonly (string | undefined)[] = Object.values(placeSettings).map(({ variable }) => variable)
  if ([...variables, 'DATABASE_URL'].includes(field)) return true
  const key = /^server\b\.?(\w*)/.exec(field)?.[1]
  return key !== undefined && (key in placeSettings || !(key in sections.server.settings))
}

/** Parses as much as possible: a syntax error further down does not hide the section. */
function readServerSection({ env, cwd, readFile }: ConfigInputs): Readonly<Record<string, unknown>> {
  try {
    const text = (readFile ?? ((file: string) => readFileSync(file, 'utf8')))(configPathOf(env, cwd))
    const section = valueAt(parseDocument(text, { prettyErrors: false, stringKeys: true }).toJS(), ['server'])
    return typeof section === 'object' && section !== null ? { ...section } : {}
  } catch {
    return {}
  }
}
