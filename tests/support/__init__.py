"""What tests share: small inputs, runs that are finished already, slow references."""
