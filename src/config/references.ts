// Turns `${VARIABLE}` and `file:/path` in the configuration file into values. Messages name variables, never values.

import { resolve } from 'node:path'
import { Secret } from '../kernel/secret.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface ReferenceContext {
  readonly env: Environment
  /** What a relative `file:` path starts from. */
  readonly folder: string
  readonly readFile: (path: string) => string
}

const wholeReference = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/
const innerReference = /\$\{([^}]*)\}/g
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** A variable that is set to nothing counts as not set: that is what an empty line in an env file means. */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

export interface ReferenceFault {
  readonly fault: string
  /** Nothing is wrong with the reference; what it names is not to be seen from here. */
  readonly isMissingHere?: true
}

export function resolveSecret(text: string, context: ReferenceContext): Secret | ReferenceFault {
  const found = secretText(text, context)
  if (typeof found !== 'string') return found
  return travelsInHeader(found) ? new Secret(found) : { fault: 'has characters that cannot be sent in a header' }
}

/** Visible ASCII: anything else is a copying accident that would only fail at the first call. */
export function travelsInHeader(credential: string): boolean {
  return /^[\x21-\x7e]+$/.test(credential)
}

function secretText(text: string, { env, folder, readFile }: ReferenceContext): string | ReferenceFault {
  const name = wholeReference.exec(text)?.[1]
  if (name !== undefined) return variable(env, name) ?? missingVariable(name)
  if (text.includes('${')) return { fault: `expected \${VARIABLE} to stand alone, with nothing before or after it` }
  if (!text.startsWith('file:')) return text
  try {
    const content = readFile(resolve(folder, text.slice('file:'.length))).trim()
    return content === '' ? { fault: 'the file it names is empty' } : content
  } catch (error) {
    return { fault: `the file it names cannot be read (${errorCode(error)})`, isMissingHere: true }
  }
}

function missingVariable(name: string): ReferenceFault {
  return { fault: `the variable ${name} is not set`, isMissingHere: true }
}

/** Puts values in the place of every `${VARIABLE}` of a text. */
export function interpolate(text: string, env: Environment): { readonly text: string } | ReferenceFault {
  const faults: ReferenceFault[] = []
  const malformed = { fault: `expected the name of a variable between \${ and }` }
  const replaced = text.replace(innerReference, (_, name: string) => {
    if (!variableName.test(name)) faults.push(malformed)
    else if (variable(env, name) === undefined) faults.push(missingVariable(name))
    return variable(env, name) ?? ''
  })
  if (/\$\{[^}]*$/.test(text)) faults.push(malformed)
  const [fault] = faults
  return fault === undefined ? { text: replaced } : fault
}

/** `${…}` of a text that name a variable, whether or not it is set. */
export function referencedVariables(text: string): string[] {
  return [...text.matchAll(innerReference)].flatMap(([, name]) => (name === undefined ? [] : [name]))
}

/** `ENOENT` and the like; a message could quote the path's surroundings. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}
