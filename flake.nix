# A shell with everything that `make test` needs: `nix develop`. Packages of Python and Node come from their locks, by `make`.
{
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = nixpkgs.lib.genAttrs systems;
    in
    {
      devShells = forEach (system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
          lib = pkgs.lib;
        in
        {
          # Behind each package are the names that .ci/run installs it by; a test compares them.
          default = pkgs.mkShell {
            packages = [
              pkgs.python311
              pkgs.gnumake
              pkgs.gcc # for the native part of the workers
              pkgs.git
              pkgs.nodejs_22 # for the npm package in js/
              pkgs.postgresql # apt: postgresql
              pkgs.dejavu_fonts # apt: fonts-dejavu-core
            ] ++ lib.optionals pkgs.stdenv.isLinux [
              pkgs.chromium # apt: chromium chromium-headless-shell
            ];
          };
        });
    };
}
