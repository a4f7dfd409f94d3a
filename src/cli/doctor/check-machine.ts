// The machine: the program itself, proxies that calls would take, and its clock.

import { setProxyVariables } from '../../config/proxy.ts'
import { type Environment, variable } from '../../config/references.ts'
import { isoTime } from '../../kernel/clock.ts'
import { readManifest } from '../manifest.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

export function checkVersion(): Finding {
  const { version, bun } = readManifest()
  const what = `tollgate ${version} on Bun ${Bun.version}, ${process.platform} ${process.arch}`
  if (bun === undefined || bun === Bun.version) return ok('version', what)
  return note('version', what, `it was tested on Bun ${bun}: npm ci`)
}

const noProxyVariables = ['NO_PROXY', 'no_proxy']

/** The runtime sends every call through these, also those to this machine, unless NO_PROXY names it. */
export function checkProxy(env: Environment): readonly Finding[] {
  const set = setProxyVariables(env)
  if (set.length === 0) return [ok('proxy', 'none: providers are called directly')]
  const exempt = noProxyVariables.flatMap((name) => (variable(env, name) ?? '').split(',')).map((host) => host.trim())
  const sparesLocal = exempt.some((host) => host === '*' || host === '127.0.0.1')
  const findings = set.map((name) => {
    const url = URL.parse(variable(env, name) ?? '')
    if (url === null || url.host === '') {
      return wrong('proxy', `${name} is not an address`, `set it to http://HOST:PORT, or unset it`)
    }
    // The host alone: a proxy's address may carry a password.
    return ok('proxy', `${name} sends calls through ${url.host}`)
  })
  if (sparesLocal || !set.some((name) => /^http_/i.test(name))) return findings
  const what = 'calls to this machine go through the proxy too'
  return [...findings, note('proxy', what, 'NO_PROXY=127.0.0.1,localhost')]
}

/** More than a signature, a token or a certificate forgives. */
const skewMaxMs = 60_000
/** No machine that runs this is older: what is before is a clock that was never set. */
const firstRelease = Date.UTC(2026, 0, 1)

export interface ClockFacts {
  readonly now: number
  /** What a provider's answer was dated, and when it came. */
  readonly dated?: { readonly at: number; readonly receivedAt: number } | undefined
  /** The newest time in the database. */
  readonly newestRow?: number | undefined
}

export function checkClock({ now, dated, newestRow }: ClockFacts): Finding {
  const shown = `${isoTime(now).slice(0, 19).replace('T', ' ')} UTC`
  const advice = 'set the clock: timedatectl set-ntp true'
  if (now < firstRelease) return wrong('clock', `${shown} is before this program was made`, advice)
  if (dated !== undefined) {
    const skewMs = dated.receivedAt - dated.at
    const seconds = Math.round(Math.abs(skewMs) / 1000)
    if (Math.abs(skewMs) <= skewMaxMs) return ok('clock', `${shown}, as a provider's`)
    return wrong('clock', `${shown} is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} a provider's`, advice)
  }
  if (newestRow !== undefined && newestRow > now + skewMaxMs) {
    return wrong('clock', `${shown} is before the newest row of the database`, advice)
  }
  return ok('clock', shown)
}
