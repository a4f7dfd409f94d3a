// A pattern that a body must match: a partial JSON value, in which a function is a check.

export type Shape = string | number | boolean | null | Judgement | readonly Shape[] | { readonly [name: string]: Shape }
export type Judgement = (value: unknown) => boolean

/** Lists have the same length, objects at least the members of the shape. */
export function fits(value: unknown, shape: Shape): boolean {
  if (typeof shape === 'function') return shape(value)
  if (Array.isArray(shape)) {
    return Array.isArray(value) && value.length === shape.length && shape.every((each, at) => fits(value[at], each))
  }
  if (typeof shape !== 'object' || shape === null) return Object.is(value, shape)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const members = value as Readonly<Record<string, unknown>>
  return Object.entries(shape).every(([name, each]) => fits(members[name], each))
}

export const absent: Judgement = (value) => value === undefined

export const either =
  (...shapes: readonly Shape[]): Judgement =>
  (value) =>
    shapes.some((shape) => fits(value, shape))

/** A list that has such an element. */
export const some =
  (shape: Shape): Judgement =>
  (value) =>
    Array.isArray(value) && value.some((each) => fits(each, shape))

/** Content that says these texts and nothing else: a string, or text parts. */
export const texts =
  (...wanted: readonly string[]): Judgement =>
  (value) => {
    if (typeof value === 'string') return value === wanted.join('\n\n')
    return fits(
      value,
      wanted.map((text) => ({ type: 'text', text })),
    )
  }

/** Content that has this text somewhere. */
export const saying =
  (wanted: string): Judgement =>
  (value) =>
    JSON.stringify(value)?.includes(JSON.stringify(wanted).slice(1, -1)) ?? false

/** A JSON text that says the same. */
export const jsonText =
  (wanted: unknown): Judgement =>
  (value) =>
    typeof value === 'string' && Bun.deepEquals(JSON.parse(value), wanted)
