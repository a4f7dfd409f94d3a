// Lets a .lua file be imported as its text, so that it is part of the program also when compiled into a single file.

declare module '*.lua' {
  const text: string
  export = text
}
