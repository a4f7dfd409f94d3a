// Building JSON as text, so that what a caller or a model wrote can be spliced in exactly as it stands.

import type { RawJson } from '../canonical/conversation.ts'

export function jsonString(text: string): RawJson {
  return JSON.stringify(text)
}

/** Members in the order given; those whose value is undefined are left out. */
export function jsonObject(members: readonly (readonly [name: string, value: RawJson | undefined])[]): RawJson {
  let text = ''
  for (const [name, value] of members) {
    if (value !== undefined) text += `${text === '' ? '' : ','}${quotedName(name)}:${value}`
  }
  return `{${text}}`
}

/** Nearly every name is one of a dialect's own, and those have nothing to escape. */
function quotedName(name: string): RawJson {
  return /^\w+$/.test(name) ? `"${name}"` : JSON.stringify(name)
}

export function jsonArray(elements: readonly RawJson[]): RawJson {
  return `[${elements.join(',')}]`
}
